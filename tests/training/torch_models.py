"""Writes torch/: weights of small networks as PyTorch saves them, and torch_models.h: what the networks predict.

    python3 torch_models.py > torch_models.h     (made with PyTorch 2.15)

The inputs are sin(0.37 i) of an element's number, those of the embedding 7 i modulo 5; test_torch_names.c has the
formulas, too. The files are written by hand, as numpy.savez_compressed, numpy.savez and safetensors write them.
"""
import io
import json
import struct
import zipfile
import torch
import torch.nn as nn

torch.manual_seed(5)


def save_npz(path, state, packed):
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, tensor in state.items():
            fortran = packed and tensor.dim() == 2  # as numpy.savez writes a.T
            shape = str(tuple(tensor.shape))
            header = f"{{'descr': '{'<i8' if tensor.dtype == torch.int64 else '<f4'}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            numbers = (tensor.t() if fortran else tensor).contiguous().flatten().tolist()
            out = io.BytesIO()
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            out.write(struct.pack(f"<{len(numbers)}{'q' if tensor.dtype == torch.int64 else 'f'}", *numbers))
            archive.writestr(name + ".npy", out.getvalue())


def save_safetensors(path, state):
    header, data = {}, b""
    for name in sorted(state):
        tensor = state[name]
        whole = tensor.dtype == torch.int64
        numbers = tensor.contiguous().flatten().tolist()
        content = struct.pack(f"<{len(numbers)}{'q' if whole else 'f'}", *numbers)
        header[name] = {"dtype": "I64" if whole else "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def show(name, values):
    numbers = [f"{v:.9g}" for v in values.flatten().tolist()]
    lines = [", ".join(numbers[i:i + 8]) for i in range(0, len(numbers), 8)]
    print(f"static const double torch_{name}[] = {{\n    " + ",\n    ".join(lines) + ",\n};")


def inputs(*shape):
    return torch.sin(0.37 * torch.arange(torch.Size(shape).numel(), dtype=torch.float64)).float().reshape(shape)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(5, 4)
        self.both = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.gates = nn.GRU(6, 4, batch_first=True)
        self.plain = nn.RNN(4, 4, batch_first=True)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.plain(self.gates(self.both(self.letters(x))[0])[0])[0][:, -1])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.block = nn.TransformerEncoderLayer(4, 2, 6, dropout=0, activation="gelu", batch_first=True,
                                                        norm_first=True)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.norm(self.encoder.block(x)))


def randomise(model):
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(0.4 * torch.randn_like(tensor) + (1 if "norm" in name or "running_var" in name else 0))
                if "running_var" in name:
                    tensor.abs_()
            elif tensor.dtype == torch.int64:
                tensor.fill_(7)
    return model.eval()


print("/* Made by torch_models.py with PyTorch 2.15.0. */\n/* clang-format off */")
with torch.no_grad():
    mlp = randomise(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))
    save_npz("torch/mlp.npz", mlp.state_dict(), True)
    show("mlp", mlp(inputs(2, 4)))
    cnn = randomise(nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)))
    save_safetensors("torch/cnn.safetensors", cnn.state_dict())
    show("cnn", cnn(inputs(2, 2, 6, 6)))
    recurrent = randomise(Recurrent())
    save_safetensors("torch/recurrent.safetensors", recurrent.state_dict())
    show("recurrent", recurrent((7 * torch.arange(12) % 5).reshape(2, 6)))
    block = randomise(Block())
    save_npz("torch/block.npz", block.state_dict(), False)
    show("block", block(inputs(2, 3, 4)))
