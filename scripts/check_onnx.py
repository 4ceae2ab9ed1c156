#!/usr/bin/env python3
"""Exported networks in ONNX Runtime: scripts/check_onnx.py [SIGMA] (default build/release/sigma).

Trains a perceptron, two convolutional networks, recurrent ones, a small GPT and a small Llama on random data for
a few steps, exports them, and compares what ONNX Runtime answers with what `sigma predict` does. Neither building
nor testing needs it. Wants the Python packages onnx, onnxruntime and numpy:
    python3 -m venv /tmp/onnx && /tmp/onnx/bin/pip install onnx onnxruntime
    /tmp/onnx/bin/python scripts/check_onnx.py
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5
EXAMPLES = 12

# name, network, shape of an example, numbers below (0: any values), classes, steps of a target (0: one)
CASES = [
    ("mlp", "input(20) + dense(64, relu) + dropout(0.3) + dense(32, gelu) + dense(5) + softmax_cross_entropy",
     (20,), 0, 5, 0),
    ("cnn", "input(1, 16, 16) + convolution(8, 3, padding=1, activation=relu) + batch_norm + max_pooling(2)"
            " + convolution(12, 3, silu) + average_pooling(2) + dense(20, relu) + dense(10) + softmax_cross_entropy",
     (1, 16, 16), 0, 10, 0),
    ("lstm", "input(12) + embedding(17, 8) + lstm(24) + lstm(24) + dense(17, time_distributed) + softmax_cross_entropy",
     (12,), 17, 17, 12),
    ("gpt", "input(16) + embedding(29, 32) + positions + 2 * (transformer(heads=4, causal)) + layer_norm"
            " + dense(29, time_distributed) + softmax_cross_entropy",
     (16,), 29, 29, 16),
    ("shapes", "input(2, 12, 12) + convolution(8, 3, stride=2, padding=1) + group_norm(2) + activation(silu)"
               " + transposed_convolution(6, 3, stride=2, padding=1) + prelu + upsampling(2) + instance_norm"
               " + adaptive_average_pooling(3) + dense(7) + softmax_cross_entropy",
     (2, 12, 12), 0, 7, 0),
    ("gru", "input(10) + embedding(13, 8) + gru(12) + layer_norm + rnn(9) + dense(13, time_distributed)"
            " + softmax_cross_entropy",
     (10,), 13, 13, 10),
    ("llama", "input(16) + embedding(29, 32, name=tokens) + 2 * (add(identity, rms_norm"
              " + attention(heads=4, key_heads=2, causal, no_bias, rotary, query_norm)) + add(identity, rms_norm + dense(64, time_distributed, no_bias) + swiglu"
              " + dense(32, time_distributed, no_bias))) + rms_norm + tied_dense(tokens) + softmax_cross_entropy",
     (16,), 29, 29, 16),
]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stderr or done.stdout}")
    return done.stdout


def make_data(shape, below, classes, steps, random):
    inputs = random.integers(0, below, (64, *shape)) if below else random.standard_normal((64, *shape))
    targets = random.integers(0, classes, (64, steps) if steps else (64,))
    numpy.save("inputs.npy", inputs.astype(numpy.float32))
    shares = numpy.eye(classes, dtype=numpy.float32)[targets]
    numpy.save("targets.npy", targets.astype(numpy.float32) if steps else shares)
    return inputs.astype(numpy.float32)[:EXAMPLES]


def check(sigma, name, network, shape, below, classes, steps):
    inputs = make_data(shape, below, classes, steps, numpy.random.default_rng(1))
    with open(f"{name}.yaml", "w") as file:
        file.write(f"network: {network}\ndata:\n  training: {{inputs: inputs.npy, targets: targets.npy}}\n"
                   "  batch: 16\nepochs: 2\nseed: 3\n")
    run(sigma, "train", f"{name}.yaml", "--quiet", "--folder", name)
    run(sigma, "export", "--onnx", f"{name}.onnx", name)
    lines = run(sigma, "predict", name, "inputs.npy", "--count", str(EXAMPLES), "--json").splitlines()
    onnx.checker.check_model(onnx.load(f"{name}.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
    source = session.get_inputs()[0]
    expected = numpy.array([numpy.ravel(json.loads(line)["outputs"]) for line in lines])
    if len(expected) != EXAMPLES:
        sys.exit(f"{name}: {len(expected)} predictions, expected {EXAMPLES}")
    differences = []
    for examples in (1, EXAMPLES):
        answers = session.run(None, {source.name: inputs[:examples]})[0].reshape(examples, -1)
        differences.append(numpy.abs(expected[:examples] - answers).max())
    worst = numpy.max(differences)  # NaN, if one is
    print(f"{name}: input {source.name} {source.shape}, largest difference {worst:.2g}")
    return worst <= TOLERANCE


def main():
    sigma = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release/sigma")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        good = [check(sigma, *case) for case in CASES]
    sys.exit(0 if all(good) else 1)


main()
