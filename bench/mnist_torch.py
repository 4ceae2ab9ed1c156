#!/usr/bin/env python3
"""examples/mnist.yaml in PyTorch, for comparison of the time to an accuracy.

    mnist_torch.py --data FOLDER --epochs 10 --threads 2 --until 98.5

The same network, initial weights, dropout, Adam, learning rate and schedule. Prints a line for each epoch:
epoch N accuracy P, and ends when an epoch reached the last accuracy that is asked for.
"""
import argparse
import gzip
import math
import os
import struct

BATCH = 100
RATE = 0.001


def read_idx(torch, folder, name):
    """The numbers of a file, packed or not, as bytes of its shape."""
    path = os.path.join(folder, name)
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if opener is open else path + ".gz", "rb") as file:
        data = file.read()
    _, kind, rank = struct.unpack(">HBB", data[:4])
    shape = struct.unpack(">%dI" % rank, data[4 : 4 + 4 * rank])
    if kind != 8 or len(data) != 4 + 4 * rank + math.prod(shape):
        raise SystemExit("mnist_torch: %s is no idx file of bytes" % path)
    return torch.frombuffer(bytearray(data[4 + 4 * rank :]), dtype=torch.uint8).reshape(shape)


def make_network(torch):
    layers = [torch.nn.Dropout(0.2)]
    for fan_in, fan_out in ((784, 1000), (1000, 800), (800, 10)):
        linear = torch.nn.Linear(fan_in, fan_out)
        torch.nn.init.kaiming_normal_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
        layers.append(linear)
        if fan_out != 10:
            layers += [torch.nn.ReLU(), torch.nn.Dropout(0.4)]
    return torch.nn.Sequential(*layers)


def make_optimiser(torch, parameters):
    """The fastest that the version has: one kernel, or one call, for all parameters. Compiling the network would cost
    more seconds than it saves in ten epochs."""
    parameters = list(parameters)
    try:
        probe = torch.nn.Parameter(torch.ones(1))
        probe.grad = torch.ones(1)
        torch.optim.Adam([probe], fused=True).step()
        return torch.optim.Adam(parameters, lr=RATE, fused=True)
    except (TypeError, RuntimeError, ValueError):
        return torch.optim.Adam(parameters, lr=RATE, foreach=True)


def accuracy(torch, network, images, labels):
    network.eval()
    with torch.no_grad():
        right = sum(
            int((network(images[i : i + 1000]).argmax(1) == labels[i : i + 1000]).sum())
            for i in range(0, len(labels), 1000)
        )
    network.train()
    return 100 * right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--until", type=float, default=101)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when the library is loaded
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    torch.set_flush_denormal(True)
    images, labels, test_images, test_labels = (
        read_idx(torch, arguments.data, part + kind)
        for part in ("train", "t10k")
        for kind in ("-images-idx3-ubyte", "-labels-idx1-ubyte")
    )
    images, test_images = (x.reshape(len(x), -1).float() / 255 for x in (images, test_images))
    labels, test_labels = labels.long(), test_labels.long()
    network = make_network(torch)
    cost_of = torch.nn.CrossEntropyLoss()
    optimiser = make_optimiser(torch, network.parameters())
    steps = len(labels) // BATCH
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, arguments.epochs * steps)
    for epoch in range(1, arguments.epochs + 1):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            optimiser.zero_grad(set_to_none=True)
            cost_of(network(images[chosen]), labels[chosen]).backward()
            optimiser.step()
            schedule.step()
        reached = accuracy(torch, network, test_images, test_labels)
        print("epoch %d accuracy %.2f" % (epoch, reached), flush=True)
        if reached >= arguments.until:
            break


main()
