#!/usr/bin/env python3
"""prelu and layers that halve as PyTorch 2.15 computes them in float64: prints gates_torch.h."""
import torch.nn.functional as F
from values_torch import Cases, numbers

cases = Cases("gates_torch.py", "gates_torch")


def halves(activation, dim=-1):
    def run(d):
        first, second = d["inputs"].chunk(2, dim)
        return first * activation(second)
    return run


def add(text, run, *shape, **given):
    cases.add(text, 3, run, inputs=numbers(3, *shape, which=1, scale=3), **given)


add("input(5) + prelu(name=n)", lambda d: F.prelu(d["inputs"], d["n.slopes"]), 5, n__slopes=numbers(1, which=2))
add("input(2, 4) + prelu(channels, name=n)", lambda d: F.prelu(d["inputs"], d["n.slopes"]), 2, 4,
    n__slopes=numbers(2, which=3))
add("input(6) + glu", lambda d: F.glu(d["inputs"]), 6)
add("input(2, 6) + glu(tanh)", halves(lambda x: x.tanh()), 2, 6)
add("input(4, 3) + glu(channels)", lambda d: F.glu(d["inputs"], 1), 4, 3)
add("input(2, 6) + swiglu", halves(F.silu), 2, 6)
add("input(6) + geglu", halves(F.gelu), 6)
add("input(4, 3) + geglu(channels)", halves(F.gelu, 1), 4, 3)
cases.write()
