#!/usr/bin/env python3
"""Writes tests/models/gguf: models of fixtures/ and tokenizers of data/ as files of GGUF, by the package gguf, as llama.cpp's
convert_hf_to_gguf.py does it. No network is used.

    python3 tests/models/gguf_models.py tests/models        (made with gguf 0.19, transformers 5.24, sentencepiece 0.2)
    python3 tests/models/gguf_models.py --check FILE FIXTURE    (reads a file that Sigma wrote)

NAME.gguf has the weights of fixtures/NAME, and llama.gguf and gpt2.gguf a tokenizer of a few letters. blocks.gguf is a Llama
with tensors of Q8_0 and Q4_0; blocks.safetensors has what the package makes of them, by the names of transformers, and what
transformers computes with that, as in fixtures.py. types.gguf has the same numbers in several types.
tokenizer_NAME.gguf has the tokenizer data/NAME.json and no tensors; tokenizer_spm.gguf one that sentencepiece learnt, whose
hashes of tokens of 20,000 lines (see tests/cross/make_tokenizers.py) are in tokenizer_spm.txt, and tokenizer_spm.json is the same
as transformers would have it.
"""
import json
import os
import sys

import gguf
import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cross"))
F32, F16, BF16 = (getattr(gguf.GGMLQuantizationType, name) for name in ("F32", "F16", "BF16"))
Q8_0, Q4_0 = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0
# The type of the matrices.
MODELS = {"llama": F32, "llama3": BF16, "llama_linear": F32, "qwen2": F32, "qwen3": F32, "gpt2": F32, "gpt2_half": F16}
TRANSPOSED = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")


def permute(values, heads):
    return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def unpermute(values, heads):
    return values.reshape(heads, values.shape[0] // heads // 2, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def heads_of(name, config):
    if "q_proj" in name:
        return config["num_attention_heads"]
    return config["num_key_value_heads"] if "k_proj" in name else None


def put_settings(w, config, architecture):
    if architecture == "gpt2":
        w.add_context_length(config["n_positions"])
        w.add_embedding_length(config["n_embd"])
        w.add_block_count(config["n_layer"])
        w.add_feed_forward_length(config["n_inner"] or 4 * config["n_embd"])
        w.add_head_count(config["n_head"])
        w.add_layer_norm_eps(config["layer_norm_epsilon"])
        return
    rope, size = config["rope_parameters"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_key_length(size)
    w.add_value_length(size)
    w.add_rope_dimension_count(size)
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_vocab_size(config["vocab_size"])
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        low, high, steps = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        factors = []
        for frequency in 1 / rope["rope_theta"] ** (numpy.arange(0, size, 2) / size):
            length = 2 * numpy.pi / frequency
            share = (steps / length - low) / (high - low)
            factors.append(1 if length < steps / high else rope["factor"] if length > steps / low
                           else 1 / ((1 - share) / rope["factor"] + share))
        w.add_tensor("rope_freqs.weight", numpy.array(factors, dtype=numpy.float32))


def converted(tensors, config, architecture):
    """Names and values of tensors, as files of GGUF have them."""
    blocks = config.get("num_hidden_layers") or config["n_layer"]
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), blocks)
    for name, value in tensors.items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        values = value.to(torch.float32).numpy()
        if heads_of(name, config) and architecture == "llama":
            values = permute(values, heads_of(name, config))
        if architecture == "gpt2" and name.endswith(TRANSPOSED):
            values = values.T
        yield names.get_name(name, (".weight", ".bias")), numpy.ascontiguousarray(values)


def put_tensors(w, tensors, config, architecture, type_of):
    for name, values in converted(tensors, config, architecture):
        kind = F32 if values.ndim == 1 or "position" in name else type_of(name)
        w.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def read_folder(path):
    tensors = {}
    for file in sorted(os.listdir(path)):
        if file.endswith(".safetensors") and file != "expected.safetensors":
            tensors.update(load_file(os.path.join(path, file)))
    return json.load(open(os.path.join(path, "config.json"))), tensors


def put_words(w, kind):
    """61 tokens: for "llama" <unk>, <s>, </s>, a space, letters, pairs; for "gpt2" a space, letters, pairs; then words that no text
    becomes."""
    space, letters = "\u2581" if kind == "llama" else "\u0120", "abcdefghijklmnopqrstuvwxyz"
    tokens = (["<unk>", "<s>", "</s>"] if kind == "llama" else []) + [space, *letters, "ab", space + "ab", "ca", "th"]
    tokens += [f"w{i}" for i in range(len(tokens), 61)]
    w.add_tokenizer_model(kind)
    if kind == "gpt2":
        w.add_tokenizer_pre("gpt-2")
        put_pieces(w, tokens, [gguf.TokenType.NORMAL] * 60 + [gguf.TokenType.CONTROL])
        w.add_token_merges(["a b", space + " ab", "c a", "t h"])
        w.add_eos_token_id(60)
        return
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.NORMAL] * 58
    put_pieces(w, tokens, types, [-float(i) for i in range(61)])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)


def write_model(folder, name):
    config, tensors = read_folder(os.path.join(folder, "fixtures", name))
    architecture = config["model_type"]
    w = gguf.GGUFWriter(os.path.join(folder, "gguf", name + ".gguf"), architecture)
    w.add_name(name)
    if name == "gpt2_half":
        w.add_custom_alignment(256)
    put_settings(w, config, architecture)
    if name in ("llama", "gpt2"):
        put_words(w, name)
    else:
        w.add_tokenizer_model("no_vocab")
    put_tensors(w, tensors, config, architecture, lambda _: MODELS[name])
    finish(w)


def write_blocks(folder):
    import fixtures
    torch.manual_seed(1)
    settings = transformers.LlamaConfig(**dict(fixtures.LLAMA, hidden_size=32, intermediate_size=64, tie_word_embeddings=True))
    model = transformers.AutoModelForCausalLM.from_config(settings, attn_implementation="eager").eval()
    fixtures.randomise(model)
    config = settings.to_dict()
    path = os.path.join(folder, "gguf", "blocks.gguf")
    w = gguf.GGUFWriter(path, "llama")
    put_settings(w, config, "llama")
    w.add_tokenizer_model("no_vocab")
    put_tensors(w, model.state_dict(), config, "llama", lambda name: Q4_0 if "blk.1" in name else Q8_0)
    finish(w)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    read = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    expected = {}
    for name in model.state_dict():
        if name != "lm_head.weight":
            values = read[names.get_name(name, (".weight", ".bias"))]
            values = unpermute(values, heads_of(name, config)) if heads_of(name, config) else values
            expected[name] = torch.from_numpy(numpy.ascontiguousarray(values))
    model.load_state_dict(expected, strict=False)
    inputs = torch.randint(0, fixtures.TOKENS, (2, fixtures.TIME))
    batches = torch.randint(0, fixtures.TOKENS, (fixtures.STEPS, 2, fixtures.TIME + 1))
    with torch.no_grad():
        expected.update(inputs=inputs, batches=batches, logits=model(inputs).logits.contiguous())
    expected = {key: value.clone() for key, value in expected.items()}
    expected["losses"] = fixtures.train(model, batches)
    save_file(expected, os.path.join(folder, "gguf", "blocks.safetensors"))


def write_types(folder):
    """Numbers of all sizes as F32, in each type that is written, and what the package reads of Q4_0."""
    random = numpy.random.default_rng(5)
    values = random.standard_normal((8, 64)).astype(numpy.float32) * numpy.float32(10) ** random.integers(-9, 7, (8, 64))
    values[0, :32] = 0
    values[1, :32] = numpy.arange(-16, 16) / 2    # halves: of F16 and BF16 exactly, of Q8_0 between two numbers
    values[1, 0] = 63.5
    values[2, :8] = [65504, 65519.99, 65520, -70000, 2 ** -24, 2 ** -25, 3 * 2 ** -25, 1 + 2 ** -11]
    values[3, :4] = [1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.3e6, -1e-38]
    values = values.astype(numpy.float32)
    w = gguf.GGUFWriter(os.path.join(folder, "gguf", "types.gguf"), "llama")
    for kind in (F32, F16, BF16, Q8_0):
        w.add_tensor(kind.name, gguf.quantize(values, kind), raw_dtype=kind)
    blocks = gguf.quantize(random.standard_normal((8, 64)).astype(numpy.float32), Q4_0)
    w.add_tensor("Q4_0", blocks, raw_dtype=Q4_0)
    w.add_tensor("Q4_0.read", gguf.dequantize(blocks, Q4_0))
    for kind in (F16, BF16, Q8_0):
        w.add_tensor(kind.name + ".read", gguf.dequantize(gguf.quantize(values, kind), kind))
    finish(w)


def put_pieces(w, tokens, types, scores=None):
    w.add_token_list(tokens)
    w.add_token_types(types)
    if scores is not None:
        w.add_token_scores(scores)


def write_tokenizer(folder, name, splitting, begin=None):
    """Added tokens are control tokens if they are special, else of the user's; numbers between are unused."""
    root = json.load(open(os.path.join(folder, "data", name + ".json")))
    added = {token["id"]: token for token in root["added_tokens"]}
    vocabulary = {number: text for text, number in root["model"]["vocab"].items()}
    tokens, types = [], []
    for number in range(max(*added, *vocabulary) + 1):
        token = added.get(number)
        tokens.append(token["content"] if token else vocabulary.get(number, f"[PAD{number}]"))
        types.append((gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED) if token
                     else gguf.TokenType.NORMAL if number in vocabulary else gguf.TokenType.UNUSED)
    w = gguf.GGUFWriter(os.path.join(folder, "gguf", "tokenizer_" + name + ".gguf"), "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(splitting)
    put_pieces(w, tokens, types)
    w.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in root["model"]["merges"]])
    if begin is not None:
        w.add_bos_token_id(begin)
        w.add_eos_token_id(begin + 1)
        chats = json.load(open(os.path.join(folder, "data", "chats.json")))
        w.add_chat_template(next(chat["template"] for chat in chats if chat["family"] == "llama-3"))
    finish(w)


def write_sentencepiece(folder):
    import io

    import make_tokenizers
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_tokenizers.TEXT), model_writer=model, vocab_size=450, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, user_defined_symbols=["newword"],
        character_coverage=0.99, minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    count = sp.get_piece_size()
    types = [gguf.TokenType.UNKNOWN if sp.is_unknown(i) else gguf.TokenType.CONTROL if sp.is_control(i)
             else gguf.TokenType.BYTE if sp.is_byte(i) else gguf.TokenType.USER_DEFINED if sp.id_to_piece(i) == "newword"
             else gguf.TokenType.NORMAL for i in range(count)]
    w = gguf.GGUFWriter(os.path.join(folder, "gguf", "tokenizer_spm.gguf"), "llama")
    w.add_tokenizer_model("llama")
    put_pieces(w, [sp.id_to_piece(i) for i in range(count)], types, [sp.get_score(i) for i in range(count)])
    w.add_bos_token_id(sp.bos_id())
    w.add_eos_token_id(sp.eos_id())
    w.add_unk_token_id(sp.unk_id())
    finish(w)
    write_sentencepiece_json(os.path.join(folder, "gguf", "tokenizer_spm.json"), sp, types)
    lines, state = make_tokenizers.Lines(), 0xcbf29ce484222325
    for _ in range(20_000):
        line = lines.line()
        # Texts of tokens, which are cut out here before; and a 0, where sentencepiece's Python stops.
        if any(text in line for text in (b"<s>", b"</s>", b"newword", b"\0")):
            continue
        for number in [sp.bos_id(), *sp.encode(line.decode(errors="replace")), 0xffffffff]:
            state = make_tokenizers.fnv(state, number.to_bytes(4, "little"))
    with open(os.path.join(folder, "gguf", "tokenizer_spm.txt"), "w") as file:
        file.write("%016x\n" % state)


def write_sentencepiece_json(path, sp, types):
    """The tokenizer.json that transformers makes of such a model: all pairs of tokens that are a third one, in the order of scores."""
    from transformers.convert_slow_tokenizer import generate_merges
    vocabulary = {sp.id_to_piece(i): i for i in range(len(types))}
    scores = {sp.id_to_piece(i): sp.get_score(i) for i, kind in enumerate(types) if kind == gguf.TokenType.NORMAL}
    added = [i for i, kind in enumerate(types) if kind in (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED)]
    root = {"added_tokens": [{"id": i, "content": sp.id_to_piece(i), "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": sp.id_to_piece(i) != "newword"} for i in added],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                               {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
            "pre_tokenizer": None,
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                               "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                        {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                         {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary,
                      "merges": [" ".join(pair) for pair in generate_merges({k: vocabulary[k] for k in scores}, scores)]}}
    json.dump(root, open(path, "w"), ensure_ascii=False)


def check(path, fixture):
    """The file has the fixture's tensors, in whatever types the file has, bit by bit."""
    config, tensors = read_folder(fixture)
    architecture = {"mistral": "llama"}.get(config["model_type"], config["model_type"])
    reader = gguf.GGUFReader(path)
    found = {tensor.name: tensor for tensor in reader.tensors}
    factors = found.pop("rope_freqs.weight", None)
    for name, values in converted(tensors, config, architecture):
        tensor = found.pop(name)
        wanted = gguf.quantize(values, tensor.tensor_type)
        assert numpy.array_equal(tensor.data.view(numpy.uint8), wanted.view(numpy.uint8)), name
    assert not found, found.keys()
    assert (factors is not None) == (config.get("rope_parameters", {}).get("rope_type") == "llama3")
    assert reader.fields["general.architecture"].contents() == architecture
    print(path, "read by gguf:", len(reader.tensors), "tensors, of", {tensor.tensor_type.name for tensor in reader.tensors})


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    else:
        os.makedirs(os.path.join(sys.argv[1], "gguf"), exist_ok=True)
        for name in MODELS:
            write_model(sys.argv[1], name)
        write_blocks(sys.argv[1])
        write_types(sys.argv[1])
        write_tokenizer(sys.argv[1], "gpt2", "gpt-2")
        write_tokenizer(sys.argv[1], "llama3", "llama-bpe", 0)
        write_tokenizer(sys.argv[1], "qwen", "qwen2")
        write_sentencepiece(sys.argv[1])
