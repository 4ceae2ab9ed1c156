#!/usr/bin/env python3
"""Writes golden_mlp.h: the loss curve of a small network, computed by NumPy in double precision, gradients by hand.

Network: 6 inputs, 8 tanh, 5 relu, 3 classes, softmax cross-entropy; momentum 0.9, learning rate 0.1; four minibatches of 10
examples, taken in order, 25 times. Values of data and parameters are sines, so that any language can make them.
"""
import pathlib

import numpy

EXAMPLES, BATCH, STEPS = 40, 10, 100
SIZES = [6, 8, 5, 3]


def wave(rows, columns, phase, size):
    count = numpy.arange(rows * columns, dtype=numpy.float64)
    return size * numpy.sin(1.7 * count + phase).reshape(rows, columns)


def train():
    x = wave(EXAMPLES, SIZES[0], 0.3, 1.0)
    classes = numpy.arange(EXAMPLES) * 7 % 3
    t = numpy.eye(3)[classes]
    weights = [wave(a, b, i, 0.5) for i, (a, b) in enumerate(zip(SIZES, SIZES[1:]))]
    biases = [wave(1, b, 10 + i, 0.1)[0] for i, b in enumerate(SIZES[1:])]
    parameters = weights + biases
    velocities = [numpy.zeros_like(p) for p in parameters]
    losses = []
    for step in range(STEPS):
        rows = slice(step % 4 * BATCH, (step % 4 + 1) * BATCH)
        a0, target = x[rows], t[rows]
        a1 = numpy.tanh(a0 @ weights[0] + biases[0])
        z2 = a1 @ weights[1] + biases[1]
        a2 = numpy.maximum(z2, 0)
        z3 = a2 @ weights[2] + biases[2]
        shifted = z3 - z3.max(axis=1, keepdims=True)
        logarithms = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
        losses.append(-(target * logarithms).sum() / BATCH)
        d3 = (numpy.exp(logarithms) - target) / BATCH
        d2 = (d3 @ weights[2].T) * (z2 > 0)
        d1 = (d2 @ weights[1].T) * (1 - a1 * a1)
        gradients = [a0.T @ d1, a1.T @ d2, a2.T @ d3, d1.sum(axis=0), d2.sum(axis=0), d3.sum(axis=0)]
        for p, v, g in zip(parameters, velocities, gradients):
            v *= 0.9
            v += g
            p -= 0.1 * v
    return losses


def main():
    lines = ["/* Made by golden_mlp.py: the loss before each of 100 steps. */", "/* clang-format off */", "static const double golden_losses[100] = {"]
    lines += ["    %.17g," % loss for loss in train()]
    lines += ["};", ""]
    pathlib.Path(__file__).with_name("golden_mlp.h").write_text("\n".join(lines))


main()
