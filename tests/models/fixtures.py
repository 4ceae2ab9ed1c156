#!/usr/bin/env python3
"""Writes the folders of tests/models/fixtures: tiny models of each architecture with random weights, as the library
transformers writes them, and what transformers computes with them. No network is used.

    python3 tests/models/fixtures.py tests/models/fixtures          (made with transformers 5.24, PyTorch 2.15)
    python3 tests/models/fixtures.py --check FOLDER FIXTURE         (reads a folder that Sigma wrote)

expected.safetensors has "inputs" (2, 12), their "logits", "greedy", what follows the first 5 tokens of the first
input, and a training: "batches" (20, 2, 13) of tokens and the "losses" of AdamW.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

TIME, TOKENS, STEPS = 12, 61, 20

LLAMA = dict(vocab_size=TOKENS, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=0)
GPT2 = dict(vocab_size=TOKENS, n_positions=32, n_embd=16, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0, bos_token_id=0, eos_token_id=0)
# name: class, settings, type of the files, size of a file
CASES = {
    "gpt2": (transformers.GPT2Config, GPT2, torch.float32, "1GB"),
    "gpt2_half": (transformers.GPT2Config, dict(GPT2, n_inner=24, tie_word_embeddings=False), torch.float16, "1GB"),
    "llama": (transformers.LlamaConfig, dict(LLAMA, tie_word_embeddings=True), torch.float32, "8KB"),
    "llama3": (transformers.LlamaConfig, dict(
        LLAMA, attention_bias=True, mlp_bias=True, head_dim=6, rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=32)), torch.bfloat16, "1GB"),
    "llama_linear": (transformers.LlamaConfig, dict(
        LLAMA, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)), torch.float64, "1GB"),
    "mistral": (transformers.MistralConfig, dict(LLAMA, sliding_window=16), torch.float32, "1GB"),
    "qwen2": (transformers.Qwen2Config, LLAMA, torch.float32, "1GB"),
    "qwen3": (transformers.Qwen3Config, dict(LLAMA, head_dim=8), torch.float32, "1GB"),
}


def randomise(model):
    """Larger weights than at the start of a training, so that mistakes show, and no gain or bias that is 1 or 0."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape) * (0.2 if parameter.dim() > 1 else 0.1)
        parameter.data = values + 1 if parameter.dim() == 1 and "norm" in name or ".ln_" in name and "bias" not in name \
            else values


def train(model, batches):
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for batch in batches:
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, TOKENS), batch[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def write(folder, name):
    kind, settings, dtype, size = CASES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = AutoModelForCausalLM.from_config(kind(**settings)).eval()
    randomise(model)
    path = os.path.join(folder, name)
    model.to(dtype).save_pretrained(path, max_shard_size=size)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    inputs = torch.randint(0, TOKENS, (2, TIME))
    batches = torch.randint(0, TOKENS, (STEPS, 2, TIME + 1))
    with torch.no_grad():
        logits = model(inputs).logits
        tokens = inputs[:1, :5]
        while tokens.shape[1] < TIME:
            tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
    save_file({"inputs": inputs, "logits": logits.contiguous(), "greedy": tokens[0, 5:].contiguous(),
               "batches": batches, "losses": train(model, batches)},
              os.path.join(path, "expected.safetensors"))


def check(folder, fixture):
    """The folder's tensors are those of the fixture bit by bit, and transformers reads it to the same logits."""
    from safetensors import safe_open
    from safetensors.torch import load_file
    expected = load_file(os.path.join(fixture, "expected.safetensors"))
    for file in sorted(os.listdir(fixture)):
        if file.endswith(".safetensors") and file != "expected.safetensors":
            old, new = load_file(os.path.join(fixture, file)), load_file(os.path.join(folder, file))
            assert old.keys() == new.keys(), (old.keys() ^ new.keys())
            for key in old:
                assert old[key].dtype == new[key].dtype and torch.equal(old[key], new[key]), key
        elif file.endswith(".json"):
            assert open(os.path.join(fixture, file)).read() == open(os.path.join(folder, file)).read(), file
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        difference = (model(expected["inputs"]).logits - expected["logits"]).abs().max().item()
    print(folder, "read by transformers", transformers.__version__, "difference", difference)
    assert difference == 0


if sys.argv[1] == "--check":
    check(sys.argv[2], sys.argv[3])
else:
    for name in CASES:
        write(sys.argv[1], name)
