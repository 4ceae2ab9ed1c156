#!/usr/bin/env python3
"""Heads, positions and norms as models of the library transformers have them, by PyTorch 2.15 in float64, with
turns of rotary positions that are compared with those of transformers 5.24: prints heads_torch.h."""
import torch
import torch.nn.functional as F
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from values_torch import Cases, numbers

cases = Cases("heads_torch.py", "heads_torch")


def frequencies(size, base, kind="default", **parameters):
    """Of each pair of a head, in float64: transformers computes them in float32, to which these are compared."""
    turns = base ** (-torch.arange(0, size, 2).double() / size)
    if kind == "default":
        return turns
    slow = turns / parameters["factor"]
    mixed = slow
    if kind == "llama3":
        low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
        places, lengths = parameters["original_max_position_embeddings"], 2 * torch.pi / turns
        smooth = (places / lengths - low) / (high - low)
        mixed = torch.where(lengths < places / high, turns,
                            torch.where(lengths > places / low, slow, (1 - smooth) * slow + smooth * turns))
    config = LlamaConfig(hidden_size=size, num_attention_heads=1, head_dim=size,
                         rope_parameters={"rope_type": kind, "rope_theta": base, **parameters})
    theirs = ROPE_INIT_FUNCTIONS[kind](config, "cpu")[0].double()
    assert torch.allclose(mixed, theirs, rtol=1e-6), (mixed, theirs)
    return mixed


def rotate(x, turns):
    """(batch, heads, time, size), as rotate_half of transformers."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2]).double()[:, None] * turns
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def attention(text, heads, shared, size, turns=None, output_bias=True, norm=None, features=6, time=5):
    def run(d):
        x = d["inputs"]
        q, k, v = (x @ d["a.weights"] + d["a.biases"]).split([heads * size, shared * size, shared * size], -1)
        q, k, v = (y.reshape(2, time, -1, size).transpose(1, 2) for y in (q, k, v))
        if norm is not None:
            q = F.rms_norm(q, (size,), d["a.query_gains"], norm)
            k = F.rms_norm(k, (size,), d["a.key_gains"], norm)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared != heads)
        y = y.transpose(1, 2).reshape(2, time, heads * size) @ d["a.output_weights"]
        return y + d["a.output_biases"] if output_bias else y
    wide = (heads + 2 * shared) * size
    given = {"inputs": numbers(2, time, features, which=6), "a__weights": numbers(features, wide, which=7),
             "a__biases": numbers(wide, which=8), "a__output_weights": numbers(heads * size, features, which=9)}
    if output_bias:
        given["a__output_biases"] = numbers(features, which=10)
    if norm is not None:
        given["a__query_gains"], given["a__key_gains"] = numbers(size, which=11), numbers(size, which=12)
    cases.add(text, 2, run, **given)


attention("input(5, 6) + attention(2, causal, head_size=4, name=a)", 2, 2, 4)
attention("input(5, 6) + attention(2, causal, head_size=4, key_heads=1, no_output_bias, name=a)", 2, 1, 4,
          output_bias=False)
attention("input(5, 6) + attention(2, causal, query_norm, epsilon=0.01, rotary, head_size=4, name=a)", 2, 2, 4,
          frequencies(4, 10000.0), norm=0.01)
attention("input(5, 6) + attention(2, causal, rotary, rotary_factor=4, head_size=4, name=a)", 2, 2, 4,
          frequencies(4, 10000.0, "linear", factor=4.0))
# The first of eight pairs stays, the last ones turn eight times slower, some lie between.
attention("input(5, 6) + attention(1, causal, rotary, rotary_base=50, rotary_factor=8, rotary_bands=(1, 4, 64), "
          "head_size=16, name=a)", 1, 1, 16,
          frequencies(16, 50.0, "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=64))

table = numbers(7, 4, which=20)
cases.add("input(3, 4) + positions(7, name=p)", 2, lambda d: d["inputs"] + d["p.weights"][:3],
          inputs=numbers(2, 3, 4, which=1), p__weights=table)
cases.add("input(3, 4) + positions(7, first=2, name=p)", 2, lambda d: d["inputs"] + d["p.weights"][2:5],
          inputs=numbers(2, 3, 4, which=1), p__weights=table)
cases.add("input(3, 4) + positions(2, first=1, same, name=p)", 2, lambda d: d["inputs"] + d["p.weights"][1],
          inputs=numbers(2, 3, 4, which=1), p__weights=numbers(2, 4, which=21))
cases.add("input(3, 4) + select(2)", 2, lambda d: d["inputs"][:, 2], inputs=numbers(2, 3, 4, which=1))
cases.add("input(3, 4) + unit_norm", 2, lambda d: F.normalize(d["inputs"], dim=-1), inputs=numbers(2, 3, 4, which=1))
tokens = torch.tensor([[0, 3, 4], [3, 2, 0]])
cases.add("input(3) + embedding(5, 4, name=e) + tied_dense(of=e, bias, name=t)", 2,
          lambda d: d["e.weights"][tokens] @ d["e.weights"].T + d["t.biases"], {"inputs": tokens},
          e__weights=numbers(5, 4, which=22), t__biases=numbers(5, which=23))
cases.write()
