#!/usr/bin/env python3
"""Layers and costs of sequences of different lengths, CTC, and heads that turn or share, as PyTorch 2.15 computes
them in float64: prints sequences_torch.h."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from values_torch import Cases, numbers

cases = Cases("sequences_torch.py", "sequences_torch")
LENGTHS = torch.tensor([5, 2, 4])
COUNTS = torch.arange(5)[None, :] < LENGTHS[:, None]


def module(kind, d, name, size, **options):
    """A recurrent layer with Sigma's parameters in the place of its own."""
    result = getattr(nn, kind.upper())(3, size, batch_first=True, **options)
    for prefix, suffix in [("", "_l0")] + ([("reverse_", "_l0_reverse")] if options.get("bidirectional") else []):
        for own, given in (("weight_ih", "weights"), ("weight_hh", "recurrent")):
            delattr(result, own + suffix)
            setattr(result, own + suffix, d[name + "." + prefix + given].t())
        biases = d[name + "." + prefix + "biases"]
        delattr(result, "bias_ih" + suffix)
        setattr(result, "bias_ih" + suffix, biases)
        hidden = torch.zeros_like(biases)
        if kind == "gru":
            hidden = torch.cat([hidden[:2 * size], d[name + "." + prefix + "recurrent_biases"]])
        delattr(result, "bias_hh" + suffix)
        setattr(result, "bias_hh" + suffix, hidden)
    return result


def run_packed(kind, d, name, size, **options):
    layer = module(kind, d, name, size, **options)
    packed = pack_padded_sequence(d["inputs"], LENGTHS, batch_first=True, enforce_sorted=False)
    # written out by functional calls, as the parameters are no nn.Parameters
    weights = [getattr(layer, n + s) for s in ["_l0"] + (["_l0_reverse"] if options.get("bidirectional") else [])
               for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    ways = 2 if options.get("bidirectional") else 1
    zeros = torch.zeros(ways, 3, size)
    mode = {"rnn": torch._VF.rnn_tanh, "gru": torch._VF.gru, "lstm": torch._VF.lstm}[kind]
    start = (zeros, zeros) if kind == "lstm" else zeros
    result = mode(packed.data, packed.batch_sizes, start, weights, True, 1, 0.0, True, ways == 2)
    out = nn.utils.rnn.PackedSequence(result[0], packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    steps = pad_packed_sequence(out, batch_first=True, total_length=5)[0]
    last = result[1][:, packed.unsorted_indices]
    return steps, torch.cat(list(last), 1)


def recurrent(text, kind, last=False, **options):
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    given = {}
    for i, prefix in enumerate([""] + (["reverse_"] if options.get("bidirectional") else [])):
        given["r__" + prefix + "weights"] = numbers(3, gates * 2, which=20 + 4 * i)
        given["r__" + prefix + "recurrent"] = numbers(2, gates * 2, which=21 + 4 * i)
        given["r__" + prefix + "biases"] = numbers(gates * 2, which=22 + 4 * i)
        if kind == "gru":
            given["r__" + prefix + "recurrent_biases"] = numbers(2, which=23 + 4 * i)
    cases.add(text, 3, lambda d: run_packed(kind, d, "r", 2, **options)[1 if last else 0], {"lengths": LENGTHS},
              inputs=numbers(3, 5, 3, which=1), **given)


recurrent("input(5, 3, lengths=lengths) + rnn(2, name=r)", "rnn")
recurrent("input(5, 3, lengths=lengths) + gru(2, name=r, last)", "gru", True)
recurrent("input(5, 3, lengths=lengths) + lstm(2, name=r, bidirectional)", "lstm", bidirectional=True)
recurrent("input(5, 3, lengths=lengths) + lstm(2, name=r, bidirectional, last)", "lstm", True, bidirectional=True)
recurrent("input(5, 3, lengths=lengths) + gru(2, name=r, bidirectional, last)", "gru", True, bidirectional=True)


def streams(text, kind):
    """Sequences that begin where those of the minibatch before ended; the fourth stream has no example."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    hidden, cell = numbers(4, 2, which=30), numbers(4, 2, which=31)

    def run(d):
        layer = module(kind, d, "r", 2)
        weights = [getattr(layer, n + "_l0") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        mode = {"rnn": torch._VF.rnn_tanh, "gru": torch._VF.gru, "lstm": torch._VF.lstm}[kind]
        h, c = hidden[None, :3].contiguous(), cell[None, :3].contiguous()
        return mode(d["inputs"], (h, c) if kind == "lstm" else h, weights, True, 1, 0.0, True, False, True)[0]
    given = {"r__weights": numbers(3, gates * 2, which=20), "r__recurrent": numbers(2, gates * 2, which=21),
             "r__biases": numbers(gates * 2, which=22)}
    if kind == "gru":
        given["r__recurrent_biases"] = numbers(2, which=23)
    fixed = {"r__hidden_memory": hidden}
    if kind == "lstm":
        fixed["r__cell_memory"] = cell
    cases.add(text, 3, run, fixed, inputs=numbers(3, 5, 3, which=1), **given)


streams("input(5, 3) + rnn(2, name=r, streams=4)", "rnn")
streams("input(5, 3) + gru(2, name=r, streams=4)", "gru")
streams("input(5, 3) + lstm(2, name=r, streams=4)", "lstm")


def cost(text, run, targets, scale=2.0, output=lambda x: x, size=4):
    cases.add(text, 3, lambda d: (run(d["inputs"], d["targets"]), output(d["inputs"])),
              {"targets": targets, "lengths": LENGTHS}, inputs=numbers(3, 5, size, which=2, scale=scale))


def softmax(x):
    return x.softmax(-1)


classes = torch.tensor([[0, 1, 2, 3, 0], [2, 2, 9, -1, 7], [1, 0, 3, 3, 99]])  # what does not count may be anything
ignored = classes.where(COUNTS, -100)
values = numbers(3, 5, 4, which=3, scale=2)
cost("input(5, 4, lengths=lengths) + softmax_cross_entropy",
     lambda x, t: F.cross_entropy(x.transpose(1, 2), ignored), classes, output=softmax)
cost("input(5, 4, lengths=lengths) + softmax_cross_entropy(label_smoothing=0.1)",
     lambda x, t: F.cross_entropy(x.transpose(1, 2), ignored, label_smoothing=0.1), classes, output=softmax)
cost("input(5, 4, lengths=lengths) + mean_squared", lambda x, t: F.mse_loss(x[COUNTS], t[COUNTS]), values)
cost("input(5, 4, lengths=lengths) + root_mean_squared", lambda x, t: F.mse_loss(x[COUNTS], t[COUNTS]).sqrt(), values)
cost("input(5, 4, lengths=lengths) + mean_absolute", lambda x, t: F.l1_loss(x[COUNTS], t[COUNTS]), values)
cost("input(5, 4, lengths=lengths) + huber", lambda x, t: F.huber_loss(x[COUNTS], t[COUNTS]), values)
cost("input(5, 4, lengths=lengths) + squared_difference", lambda x, t: ((x - t)[COUNTS] ** 2).sum(), values)
cost("input(5, 4, lengths=lengths) + binary_cross_entropy",
     lambda x, t: F.binary_cross_entropy_with_logits(x[COUNTS], t[COUNTS], reduction="sum") / 3,
     (values > 0).double(), output=torch.sigmoid)
cost("input(5, 4, lengths=lengths) + kl_divergence",
     lambda x, t: F.kl_div(x[COUNTS].log_softmax(-1), t[COUNTS], reduction="batchmean"), values.softmax(-1),
     output=softmax)


def pool(text, run):
    cases.add(text, 3, lambda d: run(d["inputs"]), {"lengths": LENGTHS}, inputs=numbers(3, 5, 4, which=4))


pool("input(5, 4, lengths=lengths) + global_average_pooling(steps)",
     lambda x: torch.stack([x[i, :n].mean(0) for i, n in enumerate(LENGTHS)]))
pool("input(5, 4, lengths=lengths) + global_max_pooling(steps)",
     lambda x: torch.stack([x[i, :n].amax(0) for i, n in enumerate(LENGTHS)]))
cases.add("input(5, 4) + global_average_pooling(steps)", 3, lambda d: d["inputs"].mean(1),
          inputs=numbers(3, 5, 4, which=4))


def ctc(text, classes, labels, counts, lengths, time, blank=0, zero=False, given=None):
    """`labels` as Sigma has them, padded; `counts`: how many of them there are."""
    batch = labels.shape[0]

    def run(d):
        logs = d["inputs"].log_softmax(-1).transpose(0, 1)
        costs = F.ctc_loss(logs, labels, lengths, counts, blank=blank, reduction="none", zero_infinity=zero)
        return costs.mean(), d["inputs"].softmax(-1)
    cases.add(text, batch, run, {"targets": labels, **(given or {})},
              inputs=numbers(batch, time, classes, which=5, scale=3))


ctc("input(6, 4) + ctc(3)", 4, torch.tensor([[1, 2, 3], [2, 2, 0], [3, 0, 0]]), torch.tensor([3, 2, 1]),
    torch.tensor([6, 6, 6]), 6)
ctc("input(5, 4, lengths=lengths) + ctc(2)", 4, torch.tensor([[1, 1], [2, 3], [0, 0]]), torch.tensor([2, 2, 0]),
    LENGTHS, 5, given={"lengths": LENGTHS})
ctc("input(5, 3, lengths=lengths) + ctc(3, blank=2)", 3, torch.tensor([[0, 1, 0], [1, -1, 0], [0, 0, -1]]),
    torch.tensor([3, 1, 2]), LENGTHS, 5, blank=2, given={"lengths": LENGTHS})
ctc("input(5, 4, lengths=lengths) + ctc(3, skip)", 4, torch.tensor([[1, 1, 2], [2, 3, 1], [3, 3, 1]]),
    torch.tensor([3, 3, 3]), LENGTHS, 5, zero=True, given={"lengths": LENGTHS})


def rotate(x, base=10000.0):
    """(batch, heads, time, size): as transformers' Llama has it, rotate_half."""
    size, time = x.shape[-1], x.shape[-2]
    angles = torch.arange(time).double()[:, None] * base ** (-2 * torch.arange(size // 2).double() / size)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1) * sin


def attention(text, heads, shared, causal=False, rotary=None, masked=False):
    size = 8 // heads

    def run(d):
        all = d["inputs"] @ d["a.weights"] + d["a.biases"]
        q, k, v = all.split([8, shared * size, shared * size], -1)
        split = lambda x, n: x.reshape(3, 5, n, size).transpose(1, 2)
        q, k, v = split(q, heads), split(k, shared), split(v, shared)
        if rotary:
            q, k = rotate(q, rotary), rotate(k, rotary)
        mask = COUNTS[:, None, None, :] if masked else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=shared != heads)
        return y.transpose(1, 2).reshape(3, 5, 8) @ d["a.output_weights"] + d["a.output_biases"]
    wide = 8 + 2 * shared * size
    cases.add(text, 3, run, {"lengths": LENGTHS} if masked else None, inputs=numbers(3, 5, 8, which=6),
              a__weights=numbers(8, wide, which=7), a__biases=numbers(wide, which=8),
              a__output_weights=numbers(8, 8, which=9), a__output_biases=numbers(8, which=10))


attention("input(5, 8) + attention(2, causal, rotary, name=a)", 2, 2, True, 10000.0)
attention("input(5, 8) + attention(2, rotary, rotary_base=100, name=a)", 2, 2, False, 100.0)
attention("input(5, 8) + attention(4, key_heads=2, name=a)", 4, 2)
attention("input(5, 8) + attention(4, key_heads=1, causal, rotary, name=a)", 4, 1, True, 10000.0)
attention("input(5, 8, lengths=lengths) + attention(2, name=a)", 2, 2, masked=True)
attention("input(5, 8, lengths=lengths) + attention(4, key_heads=2, rotary, name=a)", 4, 2, False, 10000.0, True)
cases.write()
