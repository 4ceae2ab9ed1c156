#!/usr/bin/env python3
"""Poolings to a size, upsampling and instance_norm as PyTorch 2.15 computes them in float64: prints
image_sizes_torch.h."""
import torch.nn.functional as F
from values_torch import Cases, numbers

cases = Cases("image_sizes_torch.py", "image_sizes_torch")


def add(text, run, *shape, **given):
    cases.add(text, 2, run, inputs=numbers(2, *shape, which=1), **given)


def pooled(function, *size):
    return lambda d: function(d["inputs"], size)


for name, plane, line in (("average", F.adaptive_avg_pool2d, F.adaptive_avg_pool1d),
                          ("max", F.adaptive_max_pool2d, F.adaptive_max_pool1d)):
    add("input(2, 5, 7) + adaptive_%s_pooling(3)" % name, pooled(plane, 3, 3), 2, 5, 7)
    add("input(2, 6, 4) + adaptive_%s_pooling(3, 2)" % name, pooled(plane, 3, 2), 2, 6, 4)
    add("input(1, 2, 3) + adaptive_%s_pooling(4, 3)" % name, pooled(plane, 4, 3), 1, 2, 3)
    add("input(3, 7) + adaptive_%s_pooling_1d(3)" % name, lambda d: line(d["inputs"], 3), 3, 7)
add("input(3, 2, 4) + global_max_pooling", lambda d: d["inputs"].amax((2, 3)), 3, 2, 4)
add("input(3, 2, 4) + global_average_pooling", lambda d: d["inputs"].mean((2, 3)), 3, 2, 4)


def larger(mode, *factors, **options):
    return lambda d: F.interpolate(d["inputs"], scale_factor=tuple(map(float, factors)), mode=mode, **options)


add("input(2, 2, 3) + upsampling(2)", larger("nearest", 2, 2), 2, 2, 3)
add("input(2, 2, 3) + upsampling(1, 3)", larger("nearest", 1, 3), 2, 2, 3)
add("input(2, 2, 3) + upsampling(2, bilinear)", larger("bilinear", 2, 2, align_corners=False), 2, 2, 3)
add("input(1, 3, 2) + upsampling(3, 2, bilinear)", larger("bilinear", 3, 2, align_corners=False), 1, 3, 2)
add("input(2, 4) + upsampling_1d(3)", larger("nearest", 3), 2, 4)
add("input(2, 4) + upsampling_1d(3, linear)", larger("linear", 3, align_corners=False), 2, 4)

gains, biases = numbers(3, which=2), numbers(3, which=3)
add("input(3, 2, 4) + instance_norm(name=n)",
    lambda d: F.instance_norm(d["inputs"], weight=d["n.gains"], bias=d["n.biases"]), 3, 2, 4, n__gains=gains,
    n__biases=biases)
add("input(3, 5) + instance_norm(epsilon=0.001, no_bias, name=n)",
    lambda d: F.instance_norm(d["inputs"], weight=d["n.gains"], eps=1e-3), 3, 5, n__gains=gains)
cases.write()
