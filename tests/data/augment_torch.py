"""Writes augment_torch.h: pictures as PyTorch turns, shifts and enlarges them.

    python3 augment_torch.py > augment_torch.h     (made with PyTorch 2.15)

The picture has two channels of 5 x 6 pixels, sin(0.7 i) of a pixel's number; test_augment.c has the formula, too.
"""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
C, H, W = 2, 5, 6
picture = torch.sin(0.7 * torch.arange(C * H * W)).reshape(1, C, H, W)


def sample(y, x, outside):
    """The picture at places in pixels; PyTorch counts from -1 to 1, edge to edge."""
    grid = torch.stack([(2 * x + 1) / W - 1, (2 * y + 1) / H - 1], dim=-1).unsqueeze(0)
    return F.grid_sample(picture, grid, mode="bilinear", padding_mode=outside, align_corners=False)


def rotated(degrees, fill):
    """Each pixel comes from where the turn the other way leads; a complex number is a place, up positive."""
    y, x = torch.meshgrid(torch.arange(H).double(), torch.arange(W).double(), indexing="ij")
    place = torch.complex(x - (W - 1) / 2, (H - 1) / 2 - y)
    source = place * torch.exp(torch.tensor(-1j * math.radians(degrees)))
    global picture
    kept, picture = picture, picture - fill
    result = sample((H - 1) / 2 - source.imag, source.real + (W - 1) / 2, "zeros") + fill
    picture = kept
    return result


def cropped(share, top, left):
    y, x = torch.meshgrid(torch.arange(H).double(), torch.arange(W).double(), indexing="ij")
    return sample(top + (y + 0.5) * share - 0.5, left + (x + 0.5) * share - 0.5, "border")


def shifted(down, right, fill):
    frame = F.pad(picture, (W, W, H, H), value=fill)
    return frame[:, :, H - down:2 * H - down, W - right:2 * W - right]


def show(name, values):
    numbers = [f"{v:.9g}" for v in values.flatten().tolist()]
    lines = [", ".join(numbers[i:i + 8]) for i in range(0, len(numbers), 8)]
    print(f"static const double {name}[] = {{\n    " + ",\n    ".join(lines) + ",\n};")


print("/* Made by augment_torch.py with PyTorch 2.15.0. */\n/* clang-format off */")
show("torch_rotated_25", rotated(25, 0.5))
show("torch_rotated_minus_100", rotated(-100, 0.0))
show("torch_cropped", cropped(0.7, 0.9, 0.4))
show("torch_shifted", shifted(2, -1, 0.25))
show("torch_flipped", torch.flip(picture, (2, 3)))
