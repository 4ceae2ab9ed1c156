#!/usr/bin/env python3
"""Writes tests/models/onnx: tiny networks of PyTorch with random weights, exported to ONNX, and what PyTorch computes.

    python3 tests/models/onnx_models.py tests/models/onnx       (made with PyTorch 2.15, onnx 1.23 and ONNX Runtime)

expected.safetensors has NAME.inputs (4, ...) and NAME.outputs. For "mobile", which is exported with its batch norms and
without its softmax's cost, it has a training: mobile.batches (40, ...), mobile.targets (40, 4) and mobile.losses (10) of
AdamW with minibatches of 4.
"""
import sys
import warnings

import numpy
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper, save
from safetensors.torch import save_file
from torch import nn

STEPS, BATCH = 10, 4


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.side = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.side = self.side if stride > 1 else None

    def forward(self, x):
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return torch.relu(y + (self.side(x) if self.side is not None else x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 7, 2, 3)
        self.layer1, self.layer2 = Block(4, 4, 1), Block(4, 6, 2)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class Joined(nn.Module):
    """Products of sequences, a norm, two branches side by side, and other ways of reducing."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(4, 3, bias=False)
        self.norm, self.last = nn.LayerNorm(9), nn.Linear(9, 2)

    def forward(self, x):
        both = torch.cat([nn.functional.gelu(self.first(x)), torch.tanh(self.second(x))], -1)
        return self.last(self.norm(both)).permute(0, 2, 1).reshape(-1, 2, 5).mean(2)


CASES = {
    "residual": (Residual(), (3, 16, 16)),
    "mobile": (nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8, momentum=0.3), nn.ReLU6(), nn.Conv2d(8, 8, 3, (1, 2), 1, groups=8),
        nn.SiLU(), nn.Conv2d(8, 6, (1, 2)), nn.Hardswish(), nn.AvgPool2d((2, 1)), nn.Flatten(), nn.Linear(12, 6), nn.GELU(),
        nn.Linear(6, 4)), (3, 8, 8)),
    "decoder": (nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1), nn.LeakyReLU(), nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1), nn.Sigmoid()), (1, 6, 6)),
    "signal": (nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1, dilation=1), nn.ELU(), nn.MaxPool1d(3, 2, 1), nn.Flatten(), nn.Linear(16, 3), nn.Softmax(-1)),
        (2, 8)),
    "joined": (Joined(), (5, 4)),
}


def randomise(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, 1 if parameter.dim() == 1 else 0, 0.3)


def train(model, batches, targets):
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    losses = []
    for x, y in zip(batches.split(BATCH), targets.split(BATCH)):
        loss = nn.functional.cross_entropy(model.train()(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


class Tokens(nn.Module):
    """Whole numbers as input."""

    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(7, 3), nn.Linear(12, 2)

    def forward(self, x):
        return self.last(torch.flatten(self.table(x), 1))


def write_nodes(name, shape, nodes, constants, expected, batch="n"):
    """A model of these nodes, (type, further inputs, attributes) each, one behind the other, and what ONNX Runtime gives.
    Constants pass an Identity, as those that PyTorch's exporter shares. `batch` is the number of examples that the model says."""
    made, value = [helper.make_node("Identity", ["shared_" + key], [key]) for key in constants], "x"
    for i, (kind, others, attributes) in enumerate(nodes):
        made.append(helper.make_node(kind, [value, *others], [f"v{i}"], **attributes))
        value = f"v{i}"
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, *shape])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, "shared_" + key) for key, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    save(model, f"{sys.argv[1]}/{name}.onnx")
    inputs = torch.randn(4, *shape)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected[name + ".inputs"] = inputs
    expected[name + ".outputs"] = torch.from_numpy(session.run(None, {"x": inputs.numpy()})[0].copy())


torch.manual_seed(5)
warnings.simplefilter("ignore")
expected = {}
for name, (model, shape) in CASES.items():
    randomise(model)
    inputs = torch.randn(4, *shape)
    expected[name + ".inputs"], expected[name + ".outputs"] = inputs, model.eval()(inputs).detach()
    torch.onnx.export(model, inputs, f"{sys.argv[1]}/{name}.onnx", dynamo=False, opset_version=17, input_names=["x"],
                      output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
                      do_constant_folding=name != "mobile")
tokens, numbers = Tokens(), torch.randint(7, (4, 4))
randomise(tokens)
torch.onnx.export(tokens, numbers, f"{sys.argv[1]}/tokens.onnx", dynamo=False, opset_version=17, input_names=["x"],
                  output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
expected["tokens.inputs"], expected["tokens.outputs"] = numbers, tokens(numbers).detach()
write_nodes("activations", (2, 3), [
    ("Exp", [], {}), ("Abs", [], {}), ("Softplus", [], {}), ("Softsign", [], {}),
    ("Mish", [], {}), ("Selu", [], {}), ("Gelu", [], {"approximate": "tanh"}), ("Gelu", [], {}), ("Tanh", [], {}),
    ("HardSigmoid", [], {"alpha": 1 / 6}), ("HardSwish", [], {}), ("Identity", [], {}), ("Max", ["zero"], {}),
    ("Clip", ["minus", "one"], {}), ("Sigmoid", [], {}), ("Transpose", [], {"perm": [0, 2, 1]})],
    {"zero": numpy.float32(0), "minus": numpy.float32(-1), "one": numpy.float32(1)}, expected)
write_nodes("reductions", (2, 4, 4), [
    ("AveragePool", [], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("MaxPool", [], {"kernel_shape": [3, 2], "strides": [1, 2], "auto_pad": "SAME_UPPER"}),
    ("GlobalMaxPool", [], {}), ("Squeeze", ["places"], {}), ("Reshape", ["square"], {}), ("Flatten", [], {}),
    ("MatMul", ["matrix"], {}), ("Add", ["row"], {}), ("Dropout", ["rate"], {})],
    {"places": numpy.int64([2, 3]), "square": numpy.int64([0, 1, 2]), "matrix": torch.randn(2, 3).numpy(),
     "row": torch.randn(3).numpy(), "rate": numpy.float32(0.25)}, expected)
write_nodes("means", (2, 4, 3), [  # as PyTorch exports AdaptiveAvgPool2d and Flatten for four examples
    ("ReduceMean", ["places"], {"keepdims": 1, "noop_with_empty_axes": 0}), ("Reshape", ["flat"], {"allowzero": 1}), ("MatMul", ["matrix"], {})],
    {"places": numpy.int64([-1, -2]), "flat": numpy.int64([4, 2]), "matrix": torch.randn(2, 3).numpy()}, expected, batch=4)
batches, targets = torch.randn(STEPS * BATCH, 3, 8, 8), torch.randint(4, (STEPS * BATCH,))
expected.update({"mobile.batches": batches, "mobile.targets": nn.functional.one_hot(targets, 4).float(),
                 "mobile.losses": train(CASES["mobile"][0], batches, targets)})
save_file(expected, f"{sys.argv[1]}/expected.safetensors")
