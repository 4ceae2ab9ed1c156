#!/usr/bin/env python3
"""Runs files that `sigma export --gguf` writes in llama.cpp, beside transformers; by hand, as llama.cpp is large.

    tests/cross/llama_cpp.py build/release/sigma        (made with xllamacpp 2026.10, transformers 5.24, tokenizers 0.23)

Models of random numbers, one of each family, with small tokenizers of tests/models. The tokens of a text must be those of the
library tokenizers, the ten that follow those of transformers, and the likeliest five of one step as likely. Its characters are
composed: llama.cpp does not do that (NFC), though Qwen's tokenizer does.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import tokenizers
import torch
import transformers
import xllamacpp

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models")
TEXT = "the  quick fox's DON'T \u4e2d\u6587 \u00e9 12345 \u2603 new token \n\n x"
SIZES = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256)
STRETCHED = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                 original_max_position_embeddings=32)
# Settings and tokenizer.
MODELS = {
    "llama": (lambda n: transformers.LlamaConfig(vocab_size=n, tie_word_embeddings=False, **SIZES), "gguf/tokenizer_spm.json"),
    "llama3": (lambda n: transformers.LlamaConfig(vocab_size=n, tie_word_embeddings=True, rope_parameters=STRETCHED, **SIZES),
               "data/llama3.json"),
    "mistral": (lambda n: transformers.MistralConfig(vocab_size=n, head_dim=32, sliding_window=128, **SIZES), "gguf/tokenizer_spm.json"),
    "qwen2": (lambda n: transformers.Qwen2Config(vocab_size=n, tie_word_embeddings=True, **SIZES), "data/qwen.json"),
    "qwen3": (lambda n: transformers.Qwen3Config(vocab_size=n, tie_word_embeddings=True, head_dim=32, **SIZES), "data/qwen.json"),
    "gpt2": (lambda n: transformers.GPT2Config(vocab_size=n, n_embd=64, n_layer=2, n_head=4, n_positions=256), "data/gpt2.json"),
}


def write_model(folder, settings, tokenizer):
    shutil.copy(os.path.join(HERE, tokenizer), os.path.join(folder, "tokenizer.json"))
    tokens = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_config(settings(max(tokens.get_vocab().values()) + 1)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.35 if parameter.ndim > 1 else 0.1))
    model.save_pretrained(folder)
    return model, tokens


def ask(server, path, **body):
    request = urllib.request.Request(server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def run(path):
    """Tokens of the text, those that follow, and one of these with the likeliest ones. All in float32."""
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.warmup, settings.port = 256, 1, False, 18081
    settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(settings)
    tokens = ask(server, "/tokenize", content=TEXT, add_special=True)["tokens"]
    answer = ask(server, "/completion", prompt=tokens, n_predict=10, temperature=0, n_probs=5, cache_prompt=False, return_tokens=True)
    return tokens, answer["tokens"], answer["completion_probabilities"][0]


def compare(name, sigma):
    settings, tokenizer = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = write_model(folder, settings, tokenizer)
        path = os.path.join(folder, "model.gguf")
        subprocess.run([sigma, "export", "--gguf", path, folder], check=True)
        tokens, following, likeliest = run(path)
    wanted = tokenizer.encode(TEXT).ids
    assert tokens == wanted, (tokens, wanted)
    scores = []
    with torch.no_grad():
        for _ in following:
            scores.append(torch.log_softmax(model(torch.tensor([wanted])).logits[0, -1], -1))
            wanted.append(int(scores[-1].argmax()))
    assert following == wanted[len(tokens):], (following, wanted[len(tokens):])
    # Tokens that are no whole characters have no entry of their own.
    step = following.index(likeliest["id"])
    difference = max(abs(float(scores[step][one["id"]]) - one["logprob"]) for one in likeliest["top_logprobs"])
    print(f"{name}: {len(tokens)} and {len(following)} equal tokens, log-probabilities within {difference:.1e}")
    assert difference < (5e-3 if name == "gpt2" else 5e-5)    # llama.cpp's GELU is a table of float16


if __name__ == "__main__":
    torch.manual_seed(3)
    for model_name in MODELS:
        compare(model_name, sys.argv[1])
