#!/usr/bin/env python3
"""Time of training steps in PyTorch on a GPU, for bench/device.sh.

    device_torch.py [--device cuda] <JOBS

Each line of standard input is a job: an identifier, then model, sizes ("-": the model's own), batch, optimiser, precision
(float32, tf32, bfloat16 by autocast), way and seconds. Ways: "eager" (the optimiser's update in one kernel), "compiled"
(torch.compile besides), "graphs" (compiled in the mode reduce-overhead: CUDA graphs). One process does all jobs, as importing
takes seconds. Prints first the version and the device, then for each job its identifier, the mean of a step in microseconds
and the most memory of the device in MB, or "failed" and why. The model "product" is one product of matrices of that size
squared, to see what the device can do.
"""
import argparse
import gc
import os
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_torch

WARM_UP_STEPS = 10
MINIMUM_STEPS = 5


def gpt2(torch, arguments):
    """The shape of GPT-2 with 124 million parameters, but for dropout."""
    context, blocks = (int(number) for number in (arguments.sizes or "1024,12").split(","))
    return bench_torch.gpt(torch, arguments, vocabulary=50257, context=context, width=768, heads=12, blocks=blocks)


def make_step(torch, job, device):
    words = {"eager": ["fused"], "compiled": ["fused", "compile"], "graphs": ["fused", "graphs"]}[job.way]
    attention = ["attention"] if job.model in ("gpt", "gpt2") else []
    arguments = types.SimpleNamespace(sizes=job.sizes, batch=job.batch, optimiser=job.optimiser, words=words + attention)
    tf32 = job.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.manual_seed(7)
    if job.model == "product":
        size = int(job.sizes)
        dtype = torch.bfloat16 if job.precision == "bfloat16" else torch.float32
        left, right = (torch.rand(size, size, device=device, dtype=dtype) - 0.5 for _ in range(2))
        return lambda: left @ right
    models = dict(bench_torch.MODELS, gpt2=gpt2)
    network, examples, classes, cost_of = models[job.model](torch, arguments)
    network, examples, classes = network.to(device), examples.to(device), classes.to(device)
    optimiser = bench_torch.make_optimiser(torch, arguments, network.parameters())
    model = network
    if job.way != "eager":
        model = torch.compile(network, mode="reduce-overhead" if job.way == "graphs" else None)

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=job.precision == "bfloat16"):
            cost = cost_of(model(examples), classes)
        cost.backward()
        optimiser.step()

    return step


def measure(torch, job, device):
    on_gpu = device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    step = make_step(torch, job, device)
    for _ in range(WARM_UP_STEPS):
        step()
    wait()
    begin, count = time.perf_counter(), 0
    while count < MINIMUM_STEPS or time.perf_counter() - begin < job.seconds:
        for _ in range(5):  # the queue may be ahead of the clock by these
            step()
        count += 5
        if count % 100 == 0:
            wait()
    wait()
    mean = (time.perf_counter() - begin) / count
    return "%.3f %.1f" % (1e6 * mean, torch.cuda.max_memory_allocated() / 1e6 if on_gpu else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    device = parser.parse_args().device
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if not hasattr(torch, "compile"):
        sys.exit("PyTorch %s: 2.0 or newer is wanted" % torch.__version__)
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit(77)
    print("PyTorch %s, %s" % (torch.__version__, torch.cuda.get_device_name() if device == "cuda" else "CPU"), flush=True)
    for line in sys.stdin:
        name, model, sizes, batch, optimiser, precision, way, seconds = line.split()
        job = types.SimpleNamespace(
            model=model,
            sizes=None if sizes == "-" else sizes,
            batch=int(batch),
            optimiser=optimiser,
            precision=precision,
            way=way,
            seconds=float(seconds),
        )
        try:
            print(name, measure(torch, job, device), flush=True)
        except Exception as error:  # the other jobs go on
            print(name, "failed", " ".join(str(error).split())[:300], flush=True)
        torch._dynamo.reset()
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()


main()
