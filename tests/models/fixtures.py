#!/usr/bin/env python3
"""Writes the folders of tests/models/fixtures: tiny models of each architecture with random weights, as the library
transformers writes them, and what transformers computes with them. No network is used.

    python3 tests/models/fixtures.py tests/models/fixtures          (made with transformers 5.24, PyTorch 2.15, PEFT 0.21)
    python3 tests/models/fixtures.py --check FOLDER FIXTURE         (reads a folder that Sigma wrote)
    python3 tests/models/fixtures.py --check FOLDER NAME_peft NAME  (reads adapters that Sigma wrote)
    python3 tests/models/fixtures.py --generations FOLDER           (writes the files generation.safetensors alone)
    python3 tests/models/fixtures.py --masked FIXTURE               (prints losses where some targets are left out)

expected.safetensors has "inputs" (2, 12), their "logits", "greedy", what follows the first 5 tokens of the first
input, and a training: "batches" (20, 2, 13) of tokens and the "losses" of AdamW. generation.safetensors has what generate() says
behind the first 5 tokens of each input: "penalised" (2, 2, 7), greedily with each of PENALTIES, and "beams" (5, 2, 7), for each of BEAMS, -1 behind an end. A folder NAME_peft has adapters of
the model NAME as the library PEFT writes them, and in its expected.safetensors their "logits", and the "losses" of
their training with the model's batches. Of encoders it has "lengths" (2),
"logits" of what the model is for (embeddings are means over the tokens that count), and of a training "batches"
(20, 2, 12), "batch_lengths" (20, 2), "targets" and "losses".

Of networks of pictures it has "pictures" (8, 3, 32, 32), bytes that are inputs as byte / 127.5 - 1, their "logits", the
"probabilities" of picture.png by way of the model's processor, and of a training "batches" (20, 4) of pictures' numbers,
"targets", "losses", and "mean" and "variance", the running statistics of one norm behind it.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from PIL import Image
from transformers import (AutoImageProcessor, AutoModel, AutoModelForCausalLM, AutoModelForImageClassification,
                          AutoModelForMaskedLM, AutoModelForSequenceClassification)

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


BERT = dict(vocab_size=TOKENS, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
            max_position_embeddings=24, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
            classifier_dropout=0)
DISTILBERT = dict(vocab_size=TOKENS, dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=24,
                  dropout=0, attention_dropout=0, seq_classif_dropout=0)
ENCODERS = {
    "bert_embed": (transformers.BertConfig, BERT, AutoModel),
    "bert_fill": (transformers.BertConfig, BERT, AutoModelForMaskedLM),
    "bert_classify": (transformers.BertConfig, dict(BERT, num_labels=3), AutoModelForSequenceClassification),
    "roberta_fill": (transformers.RobertaConfig, dict(BERT, type_vocab_size=1), AutoModelForMaskedLM),
    "roberta_classify": (transformers.RobertaConfig, dict(BERT, type_vocab_size=1, num_labels=3),
                         AutoModelForSequenceClassification),
    "distilbert_embed": (transformers.DistilBertConfig, DISTILBERT, AutoModel),
    "distilbert_fill": (transformers.DistilBertConfig, DISTILBERT, AutoModelForMaskedLM),
    "distilbert_classify": (transformers.DistilBertConfig, dict(DISTILBERT, num_labels=3),
                            AutoModelForSequenceClassification),
}


LABELS = dict(id2label={0: "cat", 1: "crane", 2: "crane"}, label2id={"cat": 0, "crane": 2})
VIT = dict(LABELS, image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
           intermediate_size=24)
RESNET = dict(LABELS, embedding_size=8, depths=[1, 2])
MOBILENET = dict(LABELS, image_size=32, depth_multiplier=0.05, depth_divisible_by=4, min_depth=4,
                 finegrained_output=False, classifier_dropout_prob=0, layer_norm_eps=1.0)
PLAIN, SHARE = dict(size=dict(height=32, width=32)), dict(size=dict(shortest_edge=32), resample=3, crop_pct=0.875)
MIDDLE = dict(size=dict(shortest_edge=37), crop_size=dict(height=32, width=32))
# name: settings, processor, its settings, a norm
PICTURES = {
    "vit": (transformers.ViTConfig(**VIT), transformers.ViTImageProcessor, PLAIN, None),
    "resnet": (transformers.ResNetConfig(layer_type="basic", hidden_sizes=[8, 16], downsample_in_first_stage=True, **RESNET), transformers.ConvNextImageProcessor, SHARE,
               "resnet.encoder.stages.1.layers.1.layer.1.normalization"),
    "resnet_bottleneck": (
        transformers.ResNetConfig(hidden_sizes=[16, 32], downsample_in_bottleneck=True, **RESNET),
        transformers.ViTImageProcessor, dict(PLAIN, resample=3, image_mean=[0.485, 0.456, 0.406], image_std=[0.2, 0.3, 0.25]),
        "resnet.embedder.embedder.normalization"),
    "mobilenet_v2": (transformers.MobileNetV2Config(**MOBILENET), transformers.MobileNetV2ImageProcessor, MIDDLE,
                     "mobilenet_v2.conv_stem.first_conv.normalization"),
    "mobilenet_v2_dilated": (
        transformers.MobileNetV2Config(tf_padding=False, output_stride=8, first_layer_is_expansion=False, **MOBILENET),
        transformers.MobileNetV2ImageProcessor, MIDDLE, "mobilenet_v2.conv_stem.first_conv.normalization"),
}


def randomise(model):
    """Larger weights than at the start of a training, so that mistakes show, and no gain or bias that is 1 or 0."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape) * (0.2 if parameter.dim() > 1 else 0.1)
        parameter.data = values + 1 if parameter.dim() == 1 and "norm" in name or ".ln_" in name and "bias" not in name \
            else values


def train(model, batches, masked=False):
    """With `masked` 7 of the targets of the first row cost nothing, and 5 of the second."""
    place = torch.arange(TIME)
    ignored = torch.stack([place < 7, (place < 2) | (place >= 9)]) & masked
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, weight_decay=0.01)
    losses = []
    for batch in batches:
        logits = model(batch[:, :-1]).logits
        targets = torch.where(ignored, -100, batch[:, 1:])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, TOKENS), targets.reshape(-1))
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


PENALTIES = [1.5, 0.7]  # of repetitions
# Beams, penalties of length and of repetitions; every text ends with one of ENDS.
BEAMS = [(2, 1.0, 1.0), (3, 1.0, 1.0), (3, 2.0, 1.0), (4, -1.0, 1.0), (4, 1.0, 1.3)]
ENDS = [7, 12, 19, 24, 31, 46, 49]


def write_generations(folder, name):
    path = os.path.join(folder, name)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    prompts = load_file(os.path.join(path, "expected.safetensors"))["inputs"][:, :5]

    def generate(**options):
        model.generation_config = transformers.GenerationConfig(
            do_sample=False, max_new_tokens=TIME - 5, pad_token_id=-1, **options)
        said = [model.generate(prompt[None], attention_mask=torch.ones(1, 5))[0, 5:] for prompt in prompts]
        return torch.stack([torch.nn.functional.pad(row, (0, TIME - 5 - len(row)), value=-1) for row in said])

    beams = [generate(num_beams=n, length_penalty=length, repetition_penalty=penalty, eos_token_id=ENDS)
             for n, length, penalty in BEAMS]
    save_file({"penalised": torch.stack([generate(repetition_penalty=penalty) for penalty in PENALTIES]),
               "beams": torch.stack(beams)},
              os.path.join(path, "generation.safetensors"))


# name: the model, settings
ADAPTERS = {
    "gpt2_peft": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], use_rslora=True)),
    "llama_peft": ("llama", dict(r=2, lora_alpha=6, target_modules=["q_proj", "v_proj"])),
    "qwen3_peft": ("qwen3", dict(r=3, lora_alpha=3, target_modules=["k_proj", "o_proj", "up_proj", "down_proj"])),
    # Of two patterns that match, the first one counts; PEFT sorts them when it writes. "ayers.1..." begins within a
    # name, and matches nothing.
    "llama_patterns_peft": ("llama", dict(
        r=2, lora_alpha=6, target_modules=r".*\.(q|k|v|o|up|down)_proj", exclude_modules=["layers.1.self_attn.o_proj"],
        rank_pattern={"ayers.1.self_attn.q_proj": 7, r"layers\.1\.(mlp|self_attn)\.\w+": 1, "v_proj": 3},
        alpha_pattern={"[ou].*": 2.5, "^model.layers.0.self_attn.q_proj": 5}, use_rslora=True)),
    "gpt2_layers_peft": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], layers_to_transform=[1],
                                      layers_pattern="h", rank_pattern={"mlp.c_proj": 2})),
    # Layers of classes are trained whole: those that PEFT names by itself, and one more.
    "bert_classify_peft": ("bert_classify", dict(r=2, lora_alpha=4, target_modules=["query", "value", "attention.output.dense"],
                                                 modules_to_save=["pooler.dense"])),
    "roberta_classify_peft": ("roberta_classify", dict(r=2, lora_alpha=4, target_modules=["query", "intermediate.dense"])),
}


def write_adapters(folder, name):
    import json
    import peft
    base, settings = ADAPTERS[name]
    path = os.path.join(folder, base)
    expected = load_file(os.path.join(path, "expected.safetensors"))
    torch.manual_seed(sum(map(ord, name.removesuffix("_peft"))) + 1)
    classifies = base in ENCODERS
    auto, task = (AutoModelForSequenceClassification, "SEQ_CLS") if classifies else (AutoModelForCausalLM, "CAUSAL_LM")
    model = auto.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    model = peft.get_peft_model(model, peft.LoraConfig(task_type=task, **settings)).eval()
    for key, parameter in model.named_parameters():
        if "lora_B" in key or "modules_to_save" in key:
            parameter.data = torch.randn(parameter.shape) * 0.1
    path = os.path.join(folder, name)
    model.save_pretrained(path)
    os.remove(os.path.join(path, "README.md"))
    config = os.path.join(path, "adapter_config.json")
    with open(config) as file:
        written = json.load(file)
    with open(config, "w") as file:
        json.dump(dict(written, base_model_name_or_path=None), file, indent=2)
    with torch.no_grad():
        logits = run_encoder(model, expected["inputs"], expected["lengths"]) if classifies else model(expected["inputs"]).logits
    losses = train_encoder(model, expected["batches"], expected["batch_lengths"], expected["targets"]) if classifies \
        else train(model, expected["batches"])
    save_file({"logits": logits.contiguous(), "losses": losses}, os.path.join(path, "expected.safetensors"))


def check_adapters(folder, fixture, base):
    """A folder that Sigma wrote has the tensors of the fixture, and PEFT reads it to the same logits."""
    import peft
    expected = load_file(os.path.join(fixture, "expected.safetensors"))
    given = load_file(os.path.join(base, "expected.safetensors"))
    old, new = (load_file(os.path.join(path, "adapter_model.safetensors")) for path in (fixture, folder))
    assert old.keys() == new.keys() and all(torch.equal(old[key], new[key]) for key in old)
    auto = AutoModelForSequenceClassification if "lengths" in given else AutoModelForCausalLM
    model = auto.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")
    model = peft.PeftModel.from_pretrained(model, folder).eval()
    with torch.no_grad():
        logits = run_encoder(model, given["inputs"], given["lengths"]) if "lengths" in given else model(given["inputs"]).logits
        difference = (logits - expected["logits"]).abs().max().item()
    print(folder, "read by PEFT", peft.__version__, "difference", difference)
    assert difference < 1e-5 # the fixture's were computed by another processor


def run_encoder(model, tokens, lengths):
    mask = (torch.arange(TIME)[None, :] < lengths[:, None]).long()
    result = model(tokens, attention_mask=mask)
    if hasattr(result, "logits"):
        return result.logits
    return (result.last_hidden_state * mask[:, :, None]).sum(1) / lengths[:, None]


def train_encoder(model, batches, counts, targets):
    words = targets.dim() > 2
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, weight_decay=0.01)
    losses = []
    for tokens, n, wanted in zip(batches, counts, targets):
        logits = run_encoder(model, tokens, n)
        if words:
            wanted = torch.where(torch.arange(TIME) < n[:, None], wanted, -100)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def write_encoder(folder, name):
    kind, settings, auto = ENCODERS[name]
    torch.manual_seed(sum(map(ord, name)))
    model = auto.from_config(kind(**settings)).eval()
    randomise(model)
    model.tie_weights()
    path = os.path.join(folder, name)
    model.save_pretrained(path)
    model = auto.from_pretrained(path, attn_implementation="eager").eval()
    # Token 1 is padding for RoBERTa, which counts places by it: behind the lengths alone.
    draw = lambda *shape: torch.randint(3, TOKENS, shape)
    lengths, counts = torch.tensor([12, 7]), torch.randint(3, TIME + 1, (STEPS, 2))
    pad = lambda tokens, n: torch.where(torch.arange(TIME) < n[..., None], tokens, 1)
    inputs, batches = pad(draw(2, TIME), lengths), pad(draw(STEPS, 2, TIME), counts)
    with torch.no_grad():
        expected = {"inputs": inputs, "lengths": lengths, "logits": run_encoder(model, inputs, lengths)}
    if auto is not AutoModel:
        words = auto is AutoModelForMaskedLM
        targets = draw(STEPS, 2, TIME) if words else torch.randint(0, 3, (STEPS, 2))
        losses = train_encoder(model, batches, counts, targets)
        expected.update(batches=batches, batch_lengths=counts, targets=targets, losses=losses)
    save_file({key: value.contiguous() for key, value in expected.items()}, os.path.join(path, "expected.safetensors"))


def draw_picture(folder):
    """A picture that is larger than what the networks take, of a shape that is none of theirs."""
    y, x = torch.meshgrid(torch.arange(45.0), torch.arange(70.0), indexing="ij")
    bytes_ = torch.stack([127 + 120 * torch.sin(x / 5 + y / 9), 255 * ((x - 30) ** 2 + (y - 20) ** 2 < 200), 3 * x + y], -1)
    Image.fromarray(bytes_.to(torch.uint8).numpy()).save(os.path.join(folder, "picture.png"))


def draw_batches():
    """No picture is twice in a minibatch: its statistics would be so small there that roundings grow to 1e-4 of a loss."""
    draw = torch.Generator().manual_seed(0)
    return torch.stack([torch.randperm(8, generator=draw)[:4] for _ in range(STEPS)]), \
        torch.randint(0, 3, (STEPS, 4), generator=draw)


def train_pictures(model, inputs, batches, targets):
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for numbers, wanted in zip(batches, targets):
        loss = torch.nn.functional.cross_entropy(model(inputs[numbers]).logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def write_pictures(folder, name):
    config, processor, settings, norm = PICTURES[name]
    torch.manual_seed(sum(map(ord, name)))
    model = AutoModelForImageClassification.from_config(config)
    randomise(model)
    pictures = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
    inputs = pictures / 127.5 - 1
    with torch.no_grad():
        for _ in range(20):  # running statistics that fit
            model.train()(inputs)
    path = os.path.join(folder, name)
    model.save_pretrained(path)
    processor(**settings).save_pretrained(path)
    model = AutoModelForImageClassification.from_pretrained(path, attn_implementation="eager" if name == "vit" else None).eval()
    batches, targets = draw_batches()
    picture = AutoImageProcessor.from_pretrained(path)(Image.open(os.path.join(folder, "picture.png")), return_tensors="pt")
    with torch.no_grad():
        expected = {"pictures": pictures, "logits": model(inputs).logits, "batches": batches, "targets": targets,
                    "probabilities": model(picture["pixel_values"]).logits.softmax(-1)}
    expected["losses"] = train_pictures(model, inputs, batches, targets)
    if norm is not None:
        module = model.get_submodule(norm)
        expected.update(mean=module.running_mean, variance=module.running_var)
    save_file({key: value.contiguous() for key, value in expected.items()}, os.path.join(path, "expected.safetensors"))


def check(folder, fixture):
    """The folder's tensors are those of the fixture bit by bit, and transformers reads it to the same logits."""
    expected = load_file(os.path.join(fixture, "expected.safetensors"))
    for file in sorted(os.listdir(fixture)):
        if file.endswith(".safetensors") and file not in ("expected.safetensors", "generation.safetensors"):
            old, new = load_file(os.path.join(fixture, file)), load_file(os.path.join(folder, file))
            assert old.keys() == new.keys(), (old.keys() ^ new.keys())
            for key in old:
                assert old[key].dtype == new[key].dtype and torch.equal(old[key], new[key]), key
        elif file.endswith(".json"):
            assert open(os.path.join(fixture, file)).read() == open(os.path.join(folder, file)).read(), file
    name = os.path.basename(os.path.normpath(fixture))
    auto = AutoModelForImageClassification if name in PICTURES else ENCODERS.get(name, (None, None, AutoModelForCausalLM))[2]
    model = auto.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        found = model(expected["pictures"] / 127.5 - 1).logits if name in PICTURES \
            else run_encoder(model, expected["inputs"], expected["lengths"]) if "lengths" in expected \
            else model(expected["inputs"]).logits
        difference = (found - expected["logits"]).abs().max().item()
    print(folder, "read by transformers", transformers.__version__, "difference", difference)
    assert difference == 0


def main():
    if sys.argv[1] == "--masked":
        model = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32, attn_implementation="eager")
        print(train(model, load_file(os.path.join(sys.argv[2], "expected.safetensors"))["batches"], masked=True).tolist())
    elif sys.argv[1] == "--generations":
        for name in CASES:
            write_generations(sys.argv[2], name)
    elif sys.argv[1] == "--check" and len(sys.argv) == 5:
        check_adapters(*sys.argv[2:])
    elif sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    else:
        for name in CASES:
            write(sys.argv[1], name)
            write_generations(sys.argv[1], name)
        for name in ENCODERS:
            write_encoder(sys.argv[1], name)
        draw_picture(sys.argv[1])
        for name in PICTURES:
            write_pictures(sys.argv[1], name)
        for name in ADAPTERS:
            write_adapters(sys.argv[1], name)


if __name__ == "__main__":
    main()
