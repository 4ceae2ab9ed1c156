#!/usr/bin/env python3
"""What a small network's parameters are after updates by torch.optim.LBFGS, in float64: prints lbfgs_torch.h.

One iteration for each call, and no search along the line. Made with PyTorch 2.15.
"""
import torch

torch.set_default_dtype(torch.float64)


def numbers(shape, which):
    """The same formula as in test_lbfgs.c."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1).reshape(shape)


def train(updates, data_moves=0, **options):
    parameters = [torch.nn.Parameter(numbers(shape, k)) for k, shape in enumerate(((3, 4), (4,), (4, 2)))]
    optimiser = torch.optim.LBFGS(parameters, max_iter=1, **options)
    losses = []
    for update in range(updates):
        x, t = numbers((16, 3), 10 + data_moves * update), numbers((16, 2), 11 + data_moves * update)

        def loss():
            optimiser.zero_grad()
            y = torch.tanh(x @ parameters[0] + parameters[1]) @ parameters[2]
            value = ((y - t) ** 2).mean()
            value.backward()
            return value

        losses.append(optimiser.step(loss).item())
    return torch.cat([p.detach().reshape(-1) for p in parameters]).tolist() + losses


def show(name, values):
    print("static const double %s[] = {%s};" % (name, ", ".join("%.17g" % v for v in values)))


print("/* Made by lbfgs_torch.py with PyTorch %s: the parameters one after the other, then the losses before\n"
      " * each update. */\n/* clang-format off */" % torch.__version__.split("+")[0])
show("torch_lbfgs", train(12, lr=0.5, history_size=4))
show("torch_lbfgs_all", train(20, lr=1, history_size=10))
show("torch_lbfgs_moving", train(8, data_moves=2, lr=0.1, history_size=3))
show("torch_lbfgs_tolerance", train(12, lr=0.5, history_size=4, tolerance_grad=0.05))
