#!/usr/bin/env python3
"""Time of one training step in PyTorch, for comparison: bench_torch.py THREADS

Prints the median in milliseconds. The step is that of bench_mlp: a 784-1024-1024-10 network with relu, softmax
cross-entropy, a batch of 100 records that stay in memory, float32, plain gradient descent. `--version` prints
PyTorch's version; without PyTorch the exit code is 77.
"""
import os
import statistics
import sys
import time

SIZES = (784, 1024, 1024, 10)
BATCH = 100
LEARNING_RATE = 0.01
WARM_UP_STEPS = 10
LEAST_STEPS = 30
LEAST_SECONDS = 1.0


def make_step(torch):
    """One step of training as a function without arguments."""
    torch.manual_seed(7)
    layers = []
    for fan_in, fan_out in zip(SIZES, SIZES[1:]):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(fan_in, fan_out))
    network = torch.nn.Sequential(*layers)
    cost_of = torch.nn.CrossEntropyLoss()
    descent = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)
    records = torch.rand(BATCH, SIZES[0])
    classes = torch.randint(SIZES[-1], (BATCH,))

    def step():
        # Gradients are let go of rather than zeroed: the faster way, and the default since PyTorch 2.
        descent.zero_grad(set_to_none=True)
        cost_of(network(records), classes).backward()
        descent.step()

    return step


def median_milliseconds(step):
    for _ in range(WARM_UP_STEPS):
        step()
    times = []
    while len(times) < LEAST_STEPS or sum(times) < LEAST_SECONDS:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)


def main():
    argument = sys.argv[1] if len(sys.argv) == 2 else ""
    if argument != "--version" and not (argument.isdigit() and int(argument) > 0):
        sys.exit("usage: bench_torch.py THREADS | --version")
    if argument != "--version":
        os.environ["OMP_NUM_THREADS"] = argument  # read when the library is loaded
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if argument == "--version":
        print(torch.__version__)
        return
    torch.set_num_threads(int(argument))
    print("%.4f" % median_milliseconds(make_step(torch)))


main()
