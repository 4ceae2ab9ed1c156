#!/usr/bin/env python3
"""Values and gradients of convolutions and poolings as PyTorch 2.15 computes them in float64: prints the table
that test_windows.c includes (windows_data.h)."""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def numbers(shape, which):
    """The same formula as in test_windows.c."""
    count = math.prod(shape)
    i = torch.arange(count, dtype=torch.int64)
    return (((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1).reshape(shape)


def pad(x, o, value=0.0):
    before, after = o["before"], o["after"]
    if len(x.shape) == 3:
        return F.pad(x, (before[0], after[0]), value=value)
    return F.pad(x, (before[1], after[1], before[0], after[0]), value=value)


def compute(kind, t, o):
    n = len(t[0].shape) - 2
    cut = {k: tuple(v[:n]) for k, v in o.items() if isinstance(v, list)}
    even = o["before"] == o["after"]
    if kind == "CONVOLUTION":
        f = (F.conv1d, F.conv2d)[n - 1]
        x, padding = (t[0], cut["before"]) if even else (pad(t[0], o), 0)
        return f(x, t[1], t[2] if len(t) > 2 else None, cut["stride"], padding, cut["dilation"], o["groups"])
    if kind == "TRANSPOSED":
        f = (F.conv_transpose1d, F.conv_transpose2d)[n - 1]
        return f(t[0], t[1], t[2] if len(t) > 2 else None, cut["stride"], cut["before"], cut["output_padding"], o["groups"],
                 cut["dilation"])
    if kind == "MAX":
        f = (F.max_pool1d, F.max_pool2d)[n - 1]
        x, padding = (t[0], cut["before"]) if even else (pad(t[0], o, -math.inf), 0)
        return f(x, cut["size"], cut["stride"], padding, cut["dilation"])
    f = (F.avg_pool1d, F.avg_pool2d)[n - 1]
    return f(t[0], cut["size"], cut["stride"], cut["before"], False, not o["exclude_padding"])


def case(kind, *shapes, **options):
    o = dict(size=[0, 0], stride=[1, 1], before=[0, 0], after=None, dilation=[1, 1], output_padding=[0, 0], groups=1,
             exclude_padding=0)
    o.update(options)
    o["after"] = o["after"] or o["before"]
    t = [numbers(s, i).requires_grad_() for i, s in enumerate(shapes)]
    y = compute(kind, t, o)
    (y * numbers(y.shape, 9)).sum().backward()
    values = [v for x in [y] + [x.grad for x in t] for v in x.flatten().tolist()]
    print("    {%s, %d, {%s}," % (kind, len(shapes), ", ".join(
        "{%d, {%s}}" % (len(s), ", ".join(map(str, s))) for s in shapes)))
    pairs = ", ".join("{%d, %d}" % tuple(o[k]) for k in ("size", "stride", "before", "after", "dilation", "output_padding"))
    print("     %s, %d, %d," % (pairs, o["groups"], o["exclude_padding"]))
    print("     %d, (const double[]){%s}}," % (len(values), ", ".join("%.17g" % v for v in values)))


print("/* Made by windows_data.py. */")
print("/* clang-format off */")
case("CONVOLUTION", (2, 1, 5, 6), (2, 1, 3, 2), (2,))
case("CONVOLUTION", (1, 3, 4, 4), (2, 3, 2, 3), (2,), before=[1, 2])
case("CONVOLUTION", (2, 2, 5, 5), (3, 2, 3, 3), stride=[2, 1], before=[1, 1])
case("CONVOLUTION", (1, 2, 6, 5), (2, 2, 2, 2), (2,), dilation=[2, 3], stride=[1, 2], before=[0, 1], after=[2, 2])
case("CONVOLUTION", (1, 4, 4, 3), (6, 2, 2, 2), (6,), groups=2)
case("CONVOLUTION", (2, 3, 4, 4), (3, 1, 3, 3), (3,), groups=3, before=[1, 1], stride=[2, 2])
case("CONVOLUTION", (2, 2, 8), (3, 2, 3), (3,), stride=[2, 1], before=[1, 0], dilation=[2, 1])
case("CONVOLUTION", (1, 3, 3, 3), (4, 3, 1, 1), (4,))
case("TRANSPOSED", (1, 2, 3, 3), (2, 3, 3, 2), (3,), stride=[2, 1])
case("TRANSPOSED", (1, 4, 2, 3), (4, 1, 3, 3), (2,), stride=[2, 3], before=[1, 1], output_padding=[1, 2], groups=2)
case("TRANSPOSED", (2, 2, 5), (2, 2, 3), stride=[3, 1], dilation=[2, 1], output_padding=[1, 0])
case("MAX", (2, 2, 4, 6), size=[2, 2], stride=[2, 2])
case("MAX", (1, 2, 6, 5), size=[3, 2], stride=[1, 2], before=[1, 1])
case("MAX", (1, 2, 6, 7), size=[2, 2], stride=[2, 1], dilation=[2, 3], before=[0, 0], after=[1, 1])
case("MAX", (2, 2, 9), size=[3, 0], stride=[2, 1], before=[1, 0])
case("AVERAGE", (2, 2, 4, 6), size=[2, 3], stride=[2, 3])
case("AVERAGE", (1, 2, 5, 6), size=[3, 2], stride=[2, 1], before=[1, 1])
case("AVERAGE", (1, 2, 5, 6), size=[3, 2], stride=[2, 1], before=[1, 1], exclude_padding=1)
case("AVERAGE", (2, 2, 9), size=[3, 0], stride=[2, 1], before=[1, 0], exclude_padding=1)
