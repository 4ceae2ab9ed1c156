#!/usr/bin/env python3
"""Writes what transformers computes with models of tests/models/fixtures once a setting is another one, for
test_variants.c. No network is used.

    python3 tests/models/variants.py tests/models/data/variants.safetensors      (made with transformers 5.24, PyTorch 2.15)

Each tensor is named after a fixture and a number, and texts say which text of its config.json is replaced by which:
"NAME.fixture", "NAME.old" and "NAME.new". Values are what the network gives for the fixture's inputs: logarithms of
probabilities where "NAME.log" is there, else numbers as they are.
"""
import os
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForImageClassification

from fixtures import ENCODERS, PICTURES, run_encoder

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
LABELS, NUMBERS = '"problem_type": "multi_label_classification"', '"problem_type": "regression"'
TYPE = '"model_type"'
# Fixture, old and new text of config.json.
VARIANTS = [
    ("gpt2", '"gelu_new"', '"relu"'),
    ("gpt2", '"layer_norm_epsilon": 1e-05', '"layer_norm_epsilon": 0.3'),
    ("llama", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.3'),
    ("llama", '"silu"', '"gelu_pytorch_tanh"'),
    ("llama", '"rope_theta": 10000.0', '"rope_theta": 7.0'),
    ("llama3", '"high_freq_factor": 4.0', '"high_freq_factor": 9.0'),
    ("llama3", '"high_freq_factor": 4.0,\n    "low_freq_factor": 1.0', '"high_freq_factor": 9.0,\n    "low_freq_factor": 4.0'),
    ("llama3", '"original_max_position_embeddings": 32', '"original_max_position_embeddings": 16'),
    ("mistral", '"silu"', '"gelu"'),
    ("qwen2", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.3'),
    ("qwen3", '"rms_norm_eps": 1e-06', '"rms_norm_eps": 0.3'),
    ("bert_classify", '"hidden_act": "gelu"', '"hidden_act": "silu"'),
    ("bert_classify", '"layer_norm_eps": 1e-12', '"layer_norm_eps": 0.3'),
    ("bert_classify", TYPE, f"{LABELS}, {TYPE}"),
    ("bert_classify", TYPE, f"{NUMBERS}, {TYPE}"),
    ("bert_fill", '"hidden_act": "gelu"', '"hidden_act": "relu"'),
    ("roberta_fill", '"hidden_act": "gelu"', '"hidden_act": "relu"'),
    ("roberta_classify", '"pad_token_id": 1', '"pad_token_id": 0'),
    ("distilbert_classify", '"activation": "gelu"', '"activation": "relu"'),
    ("distilbert_classify", TYPE, f"{LABELS}, {TYPE}"),
    ("vit", '"hidden_act": "gelu"', '"hidden_act": "relu"'),
    ("vit", '"layer_norm_eps": 1e-12', '"layer_norm_eps": 0.3'),
    ("vit", TYPE, f"{LABELS}, {TYPE}"),
    ("resnet", '"hidden_act": "relu"', '"hidden_act": "gelu"'),
    ("resnet", TYPE, f"{NUMBERS}, {TYPE}"),
    ("resnet_bottleneck", '"hidden_act": "relu"', '"hidden_act": "gelu"'),
    ("mobilenet_v2", '"relu6"', '"silu"'),
    ("mobilenet_v2", '"layer_norm_eps": 1.0', '"layer_norm_eps": 0.7'),
]
# Settings that are left out, of which transformers has defaults.
DEFAULTS = [
    ("gpt2", '"activation_function": "gelu_new",'),
    ("gpt2", '"layer_norm_epsilon": 1e-05,'),
    ("gpt2", '"tie_word_embeddings": true,'),
    ("llama", '"rms_norm_eps": 1e-06,'),
    ("llama", '"hidden_act": "silu",'),
    ("llama", '"rope_theta": 10000.0,'),
    ("mistral", '"rms_norm_eps": 1e-06,'),
    ("qwen2", '"rope_theta": 10000.0,'),
    ("qwen2", '"tie_word_embeddings": false,'),
    ("qwen3", '"rope_theta": 10000.0,'),
    ("bert_classify", '"layer_norm_eps": 1e-12,'),
    ("bert_classify", '"hidden_act": "gelu",'),
    ("roberta_classify", '"layer_norm_eps": 1e-12,'),
    ("roberta_classify", '"pad_token_id": 1,'),
    ("distilbert_classify", '"activation": "gelu",'),
    ("vit", '"layer_norm_eps": 1e-12,'),
    ("vit", '"hidden_act": "gelu",'),
    ("vit", '"qkv_bias": true,'),
    ("resnet", '"hidden_act": "relu",'),
    ("resnet_bottleneck", '"layer_type": "bottleneck",'),
    ("mobilenet_v2", '"hidden_act": "relu6",'),
    ("mobilenet_v2", '"expand_ratio": 6.0,'),
    ("mobilenet_v2", '"tf_padding": true,'),
    ("mobilenet_v2", '"first_layer_is_expansion": true,'),
]


def replace(path, old, new):
    text = open(path).read()
    assert text.count(old) == 1, (path, old, text.count(old))
    open(path, "w").write(text.replace(old, new))


def run(folder, fixture):
    expected = load_file(os.path.join(FIXTURES, fixture, "expected.safetensors"))
    auto = AutoModelForImageClassification if fixture in PICTURES \
        else ENCODERS.get(fixture, (None, None, AutoModelForCausalLM))[2]
    model = auto.from_pretrained(folder, dtype=torch.float32, **({} if fixture in PICTURES else {"attn_implementation": "eager"})).eval()
    with torch.no_grad():
        if fixture in PICTURES:
            return model(expected["pictures"] / 127.5 - 1).logits
        if "lengths" in expected:
            return run_encoder(model, expected["inputs"], expected["lengths"])
        return model(expected["inputs"]).logits


def main():
    tensors, texts = {}, {"format": "pt"}
    for number, (fixture, old, new) in enumerate(VARIANTS + [(*setting, "") for setting in DEFAULTS]):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(FIXTURES, fixture), folder, dirs_exist_ok=True)
            before = run(folder, fixture)
            replace(os.path.join(folder, "config.json"), old, new)
            logits = run(folder, fixture)
        name = f"{fixture}.{number}"
        assert new == "" or "problem_type" in new or (before - logits).abs().max() > 1e-3, (name, "the setting changes nothing")
        texts.update({f"{name}.fixture": fixture, f"{name}.old": old, f"{name}.new": new})
        if NUMBERS not in new:
            texts[f"{name}.log"] = "yes"
            logits = torch.nn.functional.logsigmoid(logits) if LABELS in new else logits.log_softmax(-1)
        tensors[name] = logits.contiguous()
    save_file(tensors, sys.argv[1], metadata=texts)


if __name__ == "__main__":
    main()
