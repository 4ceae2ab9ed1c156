#!/usr/bin/env python3
"""Time of training steps in PyTorch, for comparison.

    bench_torch.py --sizes 784,1024,1024,10 --batch 100 --optimiser sgd --threads 1 [--seconds 2] [--foreach]
    bench_torch.py --version          (exit code 77 without PyTorch)

The network has dense layers of these sizes with relu between them and softmax cross-entropy at the end; the records
stay in memory. Prints the median of a step in microseconds, its 10th and 90th percentile, and the process's largest
memory in MB, as bench/step.c does.
"""
import argparse
import os
import sys
import time

WARM_UP_STEPS = 5
LEAST_STEPS = 20
MOST_STEPS = 200000


def make_step(torch, arguments):
    """One step of training as a function without arguments."""
    torch.manual_seed(7)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(fan_in, fan_out))
    network = torch.nn.Sequential(*layers)
    cost_of = torch.nn.CrossEntropyLoss()
    optimisers = {"sgd": (torch.optim.SGD, 0.01), "adam": (torch.optim.Adam, 0.001)}
    kind, rate = optimisers[arguments.optimiser]
    optimiser = kind(network.parameters(), lr=rate, foreach=arguments.foreach)
    records = torch.rand(arguments.batch, sizes[0])
    classes = torch.randint(sizes[-1], (arguments.batch,))

    def step():
        # Gradients are let go of rather than zeroed: the faster way, and the default since PyTorch 2.
        optimiser.zero_grad(set_to_none=True)
        cost_of(network(records), classes).backward()
        optimiser.step()

    return step


def measure(step, seconds):
    for _ in range(WARM_UP_STEPS):
        step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < LEAST_STEPS or (len(times) < MOST_STEPS and time.perf_counter() < end):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return sorted(times)


def peak_megabytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--optimiser", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--foreach", action="store_true", help="the optimiser does all parameters in one call")
    parser.add_argument("--version", action="store_true")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when the library is loaded
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if arguments.version:
        print(torch.__version__)
        return
    torch.set_num_threads(arguments.threads)
    times = measure(make_step(torch, arguments), arguments.seconds)
    part = lambda share: 1e6 * times[int(share * len(times))]
    print("%.3f %.3f %.3f %.1f" % (part(0.5), part(0.1), part(0.9), peak_megabytes()))


main()
