#!/usr/bin/env python3
"""Makes tests/models/data: small tokenizers of every kind, and what the library `tokenizers` makes of generated lines.

    tests/cross/make_tokenizers.py [FOLDER]

Made with tokenizers 0.23.3. The lines come from a rule (see Lines) that tests/models/test_tokenizer_ids.c has, too.
hashes.txt has, for each file, a hash over the tokens of 100,000 lines, one for each tenth of them, and one over the text that
they are decoded to.
"""
import json
import os
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

LINES = 100_000
MASK = (1 << 64) - 1
# First character and how many follow: scripts, signs, emoji, controls, spaces. What is behind Unicode 14 is left out, as PCRE2
# of Debian 12 does not know it.
RANGES = [(0x20, 95), (0x61, 26), (0x61, 26), (0x61, 26), (0x30, 10), (0x20, 1), (0x20, 1), (0xa0, 96), (0x100, 256), (0x300, 112),
          (0x370, 144), (0x400, 256), (0x590, 112), (0x600, 256), (0x900, 128), (0xe00, 128), (0x1100, 256), (0x2000, 112),
          (0x2190, 112), (0x3000, 256), (0x4e00, 2000), (0xac00, 2000), (0xff00, 240), (0x1f300, 256), (0x1f600, 80), (0x0, 32),
          (0x1d400, 200), (0x20000, 200), (0x1f1e6, 26), (0x200b, 5), (0xfe00, 16), (0x2ea, 20)]
WORDS = ["the", " the", " of", "Don't", "'re", "2026", "  ", "\n\n", " \t", "e\u0301", "\u1e9b\u0323", "\u2581", "<s>", "</s>",
         "[MASK]", "<|end|>", " new token ", "newword", "hello", "HELLO", "\U0001f469\u200d\U0001f4bb", "\u0130", "\u00df", "\ufb01",
         "...", "don\u2019t", "##a", "\r\n", "x1y2", "<0x0A>", "un", "ing"]


class Lines:
    """Numbers by x -> 6364136223846793005 x + 1442695040888963407 modulo 2^64, of which the upper 32 bits count."""

    def __init__(self):
        self.state = 1

    def draw(self, count):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 32) % count

    def line(self):
        out = bytearray()
        for _ in range(self.draw(24)):
            kind = self.draw(16)
            if kind < 4:
                out += WORDS[self.draw(len(WORDS))].encode()
            elif kind == 4:
                out.append(self.draw(256))
            else:
                first, count = RANGES[self.draw(len(RANGES))]
                for _ in range(self.draw(4) + 1):
                    out += chr(first + self.draw(count)).encode()
        return bytes(out)


def fnv(state, data):
    for byte in data:
        state = ((state ^ byte) * 0x100000001b3) & MASK
    return state


TEXT = ["the quick brown fox jumps over the lazy dog", "Don't they're we've I'm it's 2026 1234 newword hello world running unhappy",
        "der schnelle braune Fuchs und die Stra\u00dfe", "\u0431\u044b\u0441\u0442\u0440\u0430\u044f \u043a\u043e\u0440\u0438\u0447\u043d\u0435\u0432\u0430\u044f \u043b\u0438\u0441\u0430",
        "\u4e2d\u6587\u5206\u8bcd \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4", "e\u0301a\u0300 caf\u00e9 na\u00efve", "a.b,c;d!e?f (g) [h] {i}",
        "interesting thinking singing ringing things something nothing of in on the and"] * 20


def byte_level(pre, **kwargs):
    t = Tokenizer(models.BPE(**kwargs))
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    return t


def train(t, trainer):
    t.train_from_iterator(TEXT, trainer)
    return t


SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def bytes_trainer(size, special):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                               show_progress=False)


def split_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated", invert=False),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    t = train(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)), bytes_trainer(600, ["<|end|>"]))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def llama3():
    t = train(byte_level(split_bytes(SPLIT)), bytes_trainer(500, ["<s>", "</s>", "<|end|>"]))
    state = json.loads(t.to_str())
    state["model"]["ignore_merges"] = True
    t = Tokenizer.from_str(json.dumps(state))
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)])])
    return t


def qwen():
    t = byte_level(split_bytes(QWEN))
    t.normalizer = normalizers.NFC()
    return train(t, bytes_trainer(500, ["<|end|>"]))


def o200k():
    t = train(byte_level(split_bytes(O200K)), bytes_trainer(450, ["<|end|>"]))
    t.add_tokens([AddedToken("new token", lstrip=True, rstrip=True, normalized=False), AddedToken("newword", single_word=True)])
    return t


def roberta():
    t = train(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)), bytes_trainer(450, ["<s>", "</s>", "[MASK]"]))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    return t


def fallback_trainer(size):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)],
                               limit_alphabet=60, show_progress=False)


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    train(t, fallback_trainer(500))
    state = json.loads(t.to_str())
    state["pre_tokenizer"] = None
    state["added_tokens"] = state["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(state))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t


def metaspace_first():
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.Metaspace(prepend_scheme="first")])
    train(t, trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<s>"], limit_alphabet=70, show_progress=False))
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    return t


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                         normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous")])
    train(t, trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=60,
                                 show_progress=False))
    t.decoder = decoders.BPEDecoder("</w>")
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(t, trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def words():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.BertNormalizer(lowercase=False)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits()])
    return train(t, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]", "[MASK]"], show_progress=False))


def unigram_trainer(size):
    return trainers.UnigramTrainer(vocab_size=size, special_tokens=["<s>", "</s>", "<unk>", "[MASK]"], unk_token="<unk>",
                                   show_progress=False)


def charsmap():
    """A table of a few replacements, as SentencePiece builds one: a double array (Yata's darts-clone), then the texts."""
    pairs = {"\ufb01": "fi", "\u00a0": " ", "\u3000": " ", "\u2026": "...", "\u0130": "I", "e\u0301": "\u00e9", "\uff21": "A",
             "\u200b": " ", "\t": " ", "\n": " ", "\u00df": "ss"}
    texts, keys = b"", []
    for key in sorted(pairs, key=lambda k: k.encode()):
        keys.append((key.encode(), len(texts)))
        texts += pairs[key].encode() + b"\0"
    units, used = {0: 0}, {0}

    def place(node, depth, items):
        labels = sorted({key[depth] if depth < len(key) else 0 for key, _ in items})
        base = 256
        while any((base ^ label) in used for label in labels) or base in bases:
            base += 1
        bases.add(base)
        units[node] |= (base ^ node) << 10 | (0x100 if 0 in labels else 0)
        for label in labels:
            used.add(base ^ label)
        for label in labels:
            below = [(key, value) for key, value in items if (key[depth] if depth < len(key) else 0) == label]
            if label == 0:
                units[base] = below[0][1] | 1 << 31
            else:
                units[base ^ label] = label
                place(base ^ label, depth + 1, below)

    bases = set()
    place(0, 0, keys)
    table = b"".join(units.get(i, 0).to_bytes(4, "little") for i in range((max(units) | 255) + 257))
    return len(table).to_bytes(4, "little") + table + texts


def t5():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(left=False, right=True),
                                         normalizers.Replace(Regex(" {2,}"), "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    train(t, unigram_trainer(400))
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def xlmr():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    train(t, unigram_trainer(300))
    state = json.loads(t.to_str())
    state["model"]["vocab"] += [["<0x%02X>" % i, -20.0] for i in range(256)]
    state["model"]["byte_fallback"] = True
    t = Tokenizer.from_str(json.dumps(state))
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")])
    return t


MAKERS = [gpt2, llama3, qwen, o200k, roberta, llama2, metaspace_first, clip, bert, words, t5, xlmr]


def hashes(t, lines):
    states, ids_state, text_state = [], 0xcbf29ce484222325, 0xcbf29ce484222325
    for number, line in enumerate(lines, 1):
        ids = t.encode(line).ids
        ids_state = fnv(ids_state, b"".join(i.to_bytes(4, "little") for i in ids) + b"\xff\xff\xff\xff")
        if number % 100 == 0:
            text_state = fnv(text_state, t.decode(ids, skip_special_tokens=False).encode())
        if number % (LINES // 10) == 0:
            states.append(ids_state)
    return states + [text_state]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../models/data")
    rule = Lines()
    lines = [rule.line().decode(errors="replace") for _ in range(LINES)]
    with open(os.path.join(folder, "hashes.txt"), "w", encoding="utf-8") as out:
        for maker in MAKERS:
            t = maker()
            name = maker.__name__ + ".json"
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(json.loads(t.to_str()), file, ensure_ascii=False, separators=(",", ":"))
            t = Tokenizer.from_file(os.path.join(folder, name))
            print(name, *("%016x" % state for state in hashes(t, lines)), file=out, flush=True)


if __name__ == "__main__":
    main()
