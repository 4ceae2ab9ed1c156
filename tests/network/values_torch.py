"""What scripts that store PyTorch's values of networks share: the cases of values.h, written as C.

    python3 SCRIPT > ITS_HEADER     (made with PyTorch 2.15, in float64)
"""
import torch

torch.set_default_dtype(torch.float64)


def numbers(*shape, which=0, scale=1.0):
    """Numbers from -scale to scale, never the same for another `which`."""
    count = torch.Size(shape).numel()
    i = torch.arange(count, dtype=torch.int64)
    return ((((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1) * scale).reshape(shape)


def shares(*shape, which=0):
    return numbers(*shape, which=which, scale=2).softmax(-1)


def line(name, tensor):
    values = ", ".join("%.17g" % v for v in tensor.detach().double().reshape(-1).tolist())
    return '{"%s", %d, (const double[]){%s}}' % (name, tensor.numel(), values)


class Cases:
    def __init__(self, script, name):
        self.script, self.name, self.cases = script, name, []

    def add(self, text, batch, run, fixed=None, **given):
        """run(the tensors) gives (total, output) or a layer's output alone, whose products with cos(0.9 i) are
        added up as total. Gradients are taken by `given`, inputs and parameters ("n.gains" as n_gains), but not by
        `fixed`, targets and other states."""
        fixed = {key.replace("__", "."): value for key, value in (fixed or {}).items()}
        leaves = {key.replace("__", "."): value.clone().requires_grad_() for key, value in given.items()}
        result = run({**leaves, **fixed})
        total, output = result if isinstance(result, tuple) else (None, result)
        if total is None:
            total = (output * torch.cos(0.9 * torch.arange(output.numel())).reshape(output.shape)).sum()
        total.backward()
        expected = [line("total", total), line("output", output)]
        expected += [line("gradient of " + key, value.grad) for key, value in leaves.items()]
        inputs = [line(key, value) for key, value in {**leaves, **fixed}.items()]
        self.cases.append((text, batch, inputs, expected))

    def write(self):
        print("/* Made by %s with PyTorch %s. */\n/* clang-format off */\n#include \"network/values.h\"\n"
              % (self.script, torch.__version__.split("+")[0]))
        print("static const values_case %s[] = {" % self.name)
        for text, batch, inputs, expected in self.cases:
            print('    {"%s", %d,' % (text.replace('"', '\\"'), batch))
            for entries in (inputs, expected):
                print("     (const values_list[]){" + ",\n                           ".join(entries) + ", {0}},")
            print("    },")
        print("};")
