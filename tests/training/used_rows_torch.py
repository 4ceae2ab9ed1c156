#!/usr/bin/env python3
"""Words, of which each minibatch uses some, after updates by PyTorch's sparse optimisers: prints used_rows_torch.h.

nn.Embedding(sparse=True) with SGD or SparseAdam; what is behind it has SGD or Adam. Made with PyTorch 2.15, in float64.
Epsilon is next to nothing, as Adam and SparseAdam do not add the same part of it.
"""
import torch

torch.set_default_dtype(torch.float64)
WORDS, SIZE, EXAMPLES, STEPS, BATCH = 40, 3, 24, 4, 4


def numbers(shape, which):
    """The same formula as in test_used_rows.c."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1).reshape(shape)


tokens = ((torch.arange(EXAMPLES * STEPS) * 7919 + 13) % 2003 % WORDS).reshape(EXAMPLES, STEPS)
targets = numbers((EXAMPLES, 2), 5).float().double()  # as blocks hold them


def train(make):
    embedding = torch.nn.Embedding(WORDS, SIZE, sparse=True)
    weights, biases = torch.nn.Parameter(numbers((SIZE * STEPS, 2), 1)), torch.nn.Parameter(torch.zeros(2))
    embedding.weight.data.copy_(numbers((WORDS, SIZE), 0))
    optimisers = make(embedding.weight, [weights, biases])
    for epoch in range(2):
        for first in range(0, EXAMPLES, BATCH):
            for optimiser in optimisers:
                optimiser.zero_grad()
            y = embedding(tokens[first:first + BATCH]).flatten(1) @ weights + biases
            ((y - targets[first:first + BATCH]) ** 2).mean().backward()
            for optimiser in optimisers:
                optimiser.step()
    return embedding.weight.detach().reshape(-1).tolist()


def sgd(words, others):
    return torch.optim.SGD([words], lr=0.1), torch.optim.SGD(others, lr=0.1)


def adam(words, others):
    return torch.optim.SparseAdam([words], lr=0.02, eps=1e-20), torch.optim.Adam(others, lr=0.02, eps=1e-20)


print("/* Made by used_rows_torch.py with PyTorch %s: the embedding's weights. */\n/* clang-format off */"
      % torch.__version__.split("+")[0])
for name, make in (("sgd", sgd), ("adam", adam)):
    print("static const double torch_sparse_%s[] = {%s};" % (name, ", ".join("%.17g" % v for v in train(make))))
