#!/usr/bin/env python3
"""Writes golden_sequences.h: losses, outputs and all gradients of small networks on sequences, by PyTorch 2.15 in
double precision.

Network: tokens (3, 5) of 7, embedding of 4, a recurrent layer of 3, dense to 7 at each step (or of the last), softmax
cross entropy, mean over all. Parameter number k, in Sigma's layout, is 0.5 * sin(1.7 * i + k) for its element i, so
that any language can make it.
"""
import pathlib

import torch
import torch.nn.functional as F

BATCH, TIME, VOCABULARY, FEATURES, SIZE = 3, 5, 7, 4, 3
TOKENS = torch.tensor([[(i * 5 + j * 3 + i * j) % VOCABULARY for j in range(TIME)] for i in range(BATCH)])
TARGETS = torch.tensor([[(i * 2 + j * 4 + 1) % VOCABULARY for j in range(TIME)] for i in range(BATCH)])


def wave(k, *shape):
    count = 1
    for d in shape:
        count *= d
    i = torch.arange(count, dtype=torch.float64)
    return (0.5 * torch.sin(1.7 * i + k)).reshape(shape).requires_grad_()


class Layer:
    """A recurrent layer whose parameters are in Sigma's layout."""

    def __init__(self, kind, first, bidirectional=False, forget_bias=0.0, **options):
        self.kind, self.gates = kind, {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
        self.forget_bias, self.bidirectional = forget_bias, bidirectional
        self.module = getattr(torch.nn, kind)(FEATURES, SIZE, batch_first=True, bidirectional=bidirectional,
                                              **options).double()
        self.parameters, width, k = [], self.gates * SIZE, first
        for _ in range(2 if bidirectional else 1):
            shapes = [(FEATURES, width), (SIZE, width)] + ([(SIZE,)] if kind == "GRU" else []) + [(width,)]
            for shape in shapes:
                self.parameters.append(wave(k, *shape))
                k += 1
        self.next = k

    def state(self):
        """PyTorch's names and shapes of our parameters."""
        each = len(self.parameters) // (2 if self.bidirectional else 1)
        state = {}
        for d in range(len(self.parameters) // each):
            p, end = self.parameters[d * each:(d + 1) * each], "_l0" + ("_reverse" if d else "")
            state["weight_ih" + end], state["weight_hh" + end] = p[0].T, p[1].T
            zeros = torch.zeros(self.gates * SIZE, dtype=torch.float64)
            state["bias_ih" + end] = p[-1]
            state["bias_hh" + end] = torch.cat([zeros[:2 * SIZE], p[2]]) if self.kind == "GRU" else zeros
            if self.forget_bias:
                bias = zeros.clone()
                bias[SIZE:2 * SIZE] = self.forget_bias
                state["bias_hh" + end] = bias
        return state

    def __call__(self, x):
        return torch.func.functional_call(self.module, self.state(), (x,))


def steps_flipped(x):
    return torch.flip(x, [1])


def case(name, layer, way="all"):
    embedding = wave(0, VOCABULARY, FEATURES)
    x = F.embedding(TOKENS, embedding)
    if way == "reverse":
        y = steps_flipped(layer(steps_flipped(x))[0])
    elif way == "last":
        state = layer(x)[1]
        state = state[0] if isinstance(state, tuple) else state
        y = torch.cat(list(state), 1)
    else:
        y = layer(x)[0]
    weights, biases = wave(layer.next, y.shape[-1], VOCABULARY), wave(layer.next + 1, VOCABULARY)
    logits = y @ weights + biases
    targets = TARGETS[:, 0] if way == "last" else TARGETS
    loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))
    parameters = [embedding] + layer.parameters + [weights, biases]
    gradients = torch.autograd.grad(loss, parameters)
    numbers = [loss.reshape(1), torch.softmax(logits, -1).reshape(-1)] + [g.reshape(-1) for g in gradients]
    flat = torch.cat(numbers).tolist()
    lines = [f"static const double golden_{name}[] = {{"]
    lines += ["    " + " ".join(f"{value:.17g}," for value in flat[i:i + 5]) for i in range(0, len(flat), 5)]
    return lines + ["};"]


def main():
    text = ["/* Made by golden_sequences.py: the loss, the outputs, then the gradient of each parameter. */",
            "/* clang-format off */"]
    text += case("rnn", Layer("RNN", 1))
    text += case("rnn_relu", Layer("RNN", 1, nonlinearity="relu"), "last")
    text += case("gru", Layer("GRU", 1))
    text += case("gru_both_last", Layer("GRU", 1, bidirectional=True), "last")
    text += case("lstm", Layer("LSTM", 1))
    text += case("lstm_forget", Layer("LSTM", 1, forget_bias=1.0), "last")
    text += case("lstm_reverse", Layer("LSTM", 1), "reverse")
    text += case("lstm_both", Layer("LSTM", 1, bidirectional=True))
    pathlib.Path(__file__).with_suffix(".h").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
