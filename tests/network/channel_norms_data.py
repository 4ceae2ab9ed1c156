#!/usr/bin/env python3
"""batch_norm and group_norm as PyTorch 2.15 computes them in float64: prints channel_norms_data.h."""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def numbers(count, which):
    """The same formula as in test_channel_norms.c."""
    i = torch.arange(count, dtype=torch.int64)
    return ((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1


def show(name, values):
    print("static const double %s[] = {%s};" % (name, ", ".join("%.17g" % v for v in values.flatten().tolist())))


print("/* Made by channel_norms_data.py. */\n/* clang-format off */")
gains, biases = numbers(4, 2).requires_grad_(), numbers(4, 3).requires_grad_()
means, variances = numbers(4, 4), numbers(4, 5).abs() + 0.5
for step in range(2):
    x = numbers(3 * 4 * 2 * 3, step).reshape(3, 4, 2, 3)
    y = F.batch_norm(x, means, variances, gains, biases, True, 0.1, 1e-5)
weights = numbers(3 * 4 * 2 * 3, 9).reshape(3, 4, 2, 3)
x.requires_grad_()
copies = means.clone(), variances.clone()
(F.batch_norm(x, *copies, gains, biases, True, 0.1, 1e-5) * weights).sum().backward()
show("trained", y.detach())
show("trained_x", x.grad)
show("trained_gains", gains.grad)
show("trained_biases", biases.grad)
show("trained_means", means)
show("trained_variances", variances)
show("validated", F.batch_norm(x, means, variances, gains, biases, False).detach())
show("grouped", F.group_norm(x, 2, gains, biases).detach())
