#!/usr/bin/env python3
"""Time of training steps in PyTorch, for comparison.

    bench_torch.py --sizes 784,1024,1024,10 --batch 100 --optimiser sgd --threads 1 [--seconds 2] [--foreach] [--compile]
    bench_torch.py --version          version, MB of its own libraries, whether it compiles (exit code 77 without PyTorch)

The network is one of MODELS: "dense" has dense layers of these sizes with relu between them; at its end is softmax
cross-entropy. The records stay in memory. Prints the median of a step in microseconds, its 10th and 90th percentile, and the process's largest
memory in MB, as bench/step.c does.
"""
import argparse
import os
import sys
import time

WARM_UP_STEPS = 5
LEAST_STEPS = 20
MOST_STEPS = 200000


def dense(torch, arguments):
    """The network, the records and their classes."""
    sizes = [int(size) for size in arguments.sizes.split(",")]
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(fan_in, fan_out))
    records = torch.rand(arguments.batch, sizes[0])
    return torch.nn.Sequential(*layers), records, torch.randint(sizes[-1], (arguments.batch,))


MODELS = {"dense": dense}


def make_step(torch, arguments):
    """One step of training as a function without arguments."""
    torch.manual_seed(7)
    network, records, classes = MODELS[arguments.model](torch, arguments)
    cost_of = torch.nn.CrossEntropyLoss()
    optimisers = {"sgd": (torch.optim.SGD, 0.01), "adam": (torch.optim.Adam, 0.001)}
    kind, rate = optimisers[arguments.optimiser]
    optimiser = kind(network.parameters(), lr=rate, foreach=arguments.foreach)
    answer = torch.compile(network) if arguments.compile else network

    def step():
        # Gradients are let go of rather than zeroed: the faster way, and the default since PyTorch 2.
        optimiser.zero_grad(set_to_none=True)
        cost_of(answer(records), classes).backward()
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


def library_megabytes():
    """Of the files that PyTorch itself brings, without those that it needs (a BLAS, oneDNN, OpenMP)."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
    own = [file for file in files if os.path.basename(file).startswith(("libtorch", "libc10"))]
    return sum(os.path.getsize(file) for file in own) / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=list(MODELS), default="dense")
    parser.add_argument("--sizes", help="of the input and of the layers, for dense")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--optimiser", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--foreach", action="store_true", help="the optimiser does all parameters in one call")
    parser.add_argument("--compile", action="store_true", help="torch.compile, which PyTorch has from version 2 on")
    parser.add_argument("--version", action="store_true")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when the library is loaded
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if arguments.version:
        print(torch.__version__, "%.1f" % library_megabytes(), int(hasattr(torch, "compile")))
        return
    torch.set_num_threads(arguments.threads)
    times = measure(make_step(torch, arguments), arguments.seconds)
    part = lambda share: 1e6 * times[int(share * len(times))]
    print("%.3f %.3f %.3f %.1f" % (part(0.5), part(0.1), part(0.9), peak_megabytes()))


main()
