"""Writes attention_torch.h: losses and gradients of layers of attention as PyTorch computes them in float64.

    python3 attention_torch.py > attention_torch.h     (made with PyTorch 2.15)

Weights, inputs and targets are formulas of an element's number, which test_attention.c has, too, so that only
results are stored: of each parameter one number, its gradient's products with cos(0.9 i) added up. Matrices are
filled as Sigma has them, (inputs, outputs), and given to PyTorch transposed.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class Filler:
    """Parameters in the order in which Sigma's network records them."""

    def __init__(self):
        self.parameters = []

    def fill(self, parameter, base=0.0, transposed=False):
        shape = tuple(reversed(parameter.shape)) if transposed else tuple(parameter.shape)
        i = torch.arange(parameter.numel(), dtype=torch.float64)
        values = (base + 0.3 * torch.sin(1 + 0.7 * i + 1.3 * len(self.parameters))).reshape(shape)
        parameter.data = values.t().contiguous() if transposed else values
        self.parameters.append((parameter, transposed))

    def linear(self, weight, bias):
        self.fill(weight, transposed=True)
        self.fill(bias)

    def norm(self, module):
        self.fill(module.weight, base=1.0)
        if getattr(module, "bias", None) is not None:
            self.fill(module.bias)

    def attention(self, module):
        self.linear(module.in_proj_weight, module.in_proj_bias)
        self.linear(module.out_proj.weight, module.out_proj.bias)

    def projections(self):
        for parameter, transposed in self.parameters:
            gradient = (parameter.grad.t() if transposed else parameter.grad).reshape(-1)
            i = torch.arange(gradient.numel(), dtype=torch.float64)
            yield (gradient * torch.cos(0.9 * i)).sum().item()


def attend(module, x, causal):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if causal else None
    return module(x, x, x, attn_mask=mask, need_weights=False)[0]


class Block(nn.Module):
    def __init__(self, size, heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = nn.MultiheadAttention(size, heads, batch_first=True)
        self.hidden, self.output = nn.Linear(size, hidden), nn.Linear(hidden, size)

    def fill(self, filler):
        filler.norm(self.norm1)
        filler.attention(self.attention)
        filler.norm(self.norm2)
        filler.linear(self.hidden.weight, self.hidden.bias)
        filler.linear(self.output.weight, self.output.bias)

    def forward(self, x):
        x = x + attend(self.attention, self.norm1(x), True)
        return x + self.output(F.gelu(self.hidden(self.norm2(x))))


def report(name, filler, loss):
    loss.backward()
    numbers = [loss.item()] + list(filler.projections())
    print("static const double %s[] = {" % name)
    for start in range(0, len(numbers), 3):
        print("    " + " ".join("%.17g," % number for number in numbers[start:start + 3]))
    print("};")


def behind_dense(name, size, fill, run):
    filler, dense = Filler(), nn.Linear(4, size)
    filler.linear(dense.weight, dense.bias)
    fill(filler)
    x = torch.sin(0.37 * torch.arange(2 * 3 * 4) + 0.2).reshape(2, 3, 4)
    y = run(dense(x))
    targets = torch.cos(0.5 * torch.arange(y.numel())).reshape(y.shape)
    report(name, filler, F.mse_loss(y, targets))


def gpt():
    filler = Filler()
    tokens, positions, norm = nn.Embedding(5, 8), nn.Embedding(4, 8), nn.LayerNorm(8)
    blocks = [Block(8, 2, 16) for _ in range(2)]
    filler.fill(tokens.weight)
    filler.fill(positions.weight)
    for block in blocks:
        block.fill(filler)
    filler.norm(norm)
    b, t = torch.meshgrid(torch.arange(2), torch.arange(4), indexing="ij")
    x = tokens((3 * b + 2 * t) % 5) + positions(t)
    for block in blocks:
        x = block(x)
    y = F.linear(norm(x), tokens.weight)
    report("torch_gpt", filler, F.cross_entropy(y.reshape(-1, 5), ((b + 3 * t + 1) % 5).reshape(-1)))


def activations():
    table = [("gelu", F.gelu), ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")), ("silu", F.silu),
             ("mish", F.mish), ("softplus", F.softplus), ("elu", F.elu), ("selu", F.selu),
             ("leaky_relu", F.leaky_relu), ("relu6", F.relu6), ("hard_sigmoid", F.hardsigmoid),
             ("hard_silu", F.hardswish), ("hard_tanh", F.hardtanh), ("softsign", F.softsign)]
    points = [-3.5, -1.25, -0.3, 0.4, 1.75, 7.0]
    print("/* values and gradients at %s */" % ", ".join("%g" % point for point in points))
    print("static const struct {\n    const char *name;\n    double values[6], gradients[6];\n} torch_activations[] = {")
    for name, function in table:
        x = torch.tensor(points, requires_grad=True)
        y = function(x)
        y.sum().backward()
        rows = [", ".join("%.17g" % number for number in list(numbers)) for numbers in (y.tolist(), x.grad.tolist())]
        print('    {"%s",\n     {%s},\n     {%s}},' % (name, rows[0], rows[1]))
    print("};")


print("/* Made by attention_torch.py with PyTorch %s: of each network the loss, then a number of each parameter. */"
      % torch.__version__.split("+")[0])
norm, rms = nn.LayerNorm(6), nn.RMSNorm(6, eps=1e-5)
behind_dense("torch_layer_norm", 6, lambda f: f.norm(norm), norm)
behind_dense("torch_rms_norm", 6, lambda f: f.norm(rms), rms)
for name, causal, heads in (("torch_causal", True, 2), ("torch_attention", False, 4)):
    module = nn.MultiheadAttention(4, heads, batch_first=True)
    behind_dense(name, 4, lambda f: f.attention(module), lambda x: attend(module, x, causal))
gpt()
activations()
