#!/usr/bin/env python3
"""Makes tests/models/data/variants.json: tokenizers of the files beside it with other steps, and what the library `tokenizers`
makes of texts with them. They are the rare ones: matches of no byte, classes of characters, affixes, spaces around tokens.

    tests/cross/make_variants.py [FOLDER]

Made with tokenizers 0.23.3.
"""
import json
import os
import sys

from tokenizers import Tokenizer


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def added(number, content, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


FIRST = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
THREES = r"(?=(\d{3})+(?!\d))"  # groups of three digits from the right
NUMBERS = ["12345678 x1234", "", "123", "don't 1"]
LATIN = ["\u00b2\u00b3\u00b9 \u00bc\u00bd\u00be_a\u0301 \u00aa", "a\u000bb\u000cc\n\u0085\u2028d"]
SPACES = ["a    b  c", "    ", "x \n\n\n y\n", "\n\n"]
CASES = [
    ("gpt2", {"pre_tokenizer": split(THREES)}, NUMBERS),
    ("gpt2", {"pre_tokenizer": split(THREES, "MergedWithPrevious")}, NUMBERS),
    ("gpt2", {"pre_tokenizer": split(THREES, "MergedWithNext", True)}, NUMBERS),
    ("gpt2", {"pre_tokenizer": split("n|", "Contiguous")}, ["running", "nn", "unhappy"]),
    ("gpt2", {"pre_tokenizer": split("", "Removed", True)}, ["the quick"]),
    ("gpt2", {"pre_tokenizer": split("x*", "Removed")}, ["the quick axxb"]),
    ("gpt2", {"pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}}, ["the"]),
    ("llama2", {"normalizer": replace({"Regex": "x{,2}"}, " ")}, ["axxxb", "", "x"]),
    ("llama2", {"normalizer": replace({"String": ""}, "e")}, ["ab\u00e9", ""]),
    ("llama2", {"normalizer": replace({"Regex": "[\\w]"}, "")}, LATIN),
    ("llama2", {"normalizer": replace({"Regex": "\\w"}, "")}, LATIN),
    ("llama2", {"normalizer": replace({"Regex": "[^\\w]"}, "")}, LATIN),
    ("llama2", {"normalizer": replace({"Regex": "\\v|[\\v]"}, "")}, LATIN),
    ("llama2", {"normalizer": replace({"Regex": "a{,}"}, "")}, ["aa{,}a"]),
    ("llama2", {"normalizer": replace({"Regex": "(?i:(?-i:A)[b])[^\\p{Lu}]"}, "_")}, ["ABcabcABC"]),
    ("llama2", {"model.end_of_word_suffix": "</w>"}, ["ab\u00e9", "\u00e9"]),
    ("metaspace_first", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}, "pre_tokenizer": FIRST},
     ["  the", "the", "<s>the"]),
    ("metaspace_first", {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False,
                                        "strip_accents": True, "lowercase": False}, "pre_tokenizer": FIRST},
     ["\x01the", "\u0301the", "the", " the"]),
    ("metaspace_first", {"normalizer": {"type": "StripAccents"}, "pre_tokenizer": FIRST}, ["\u0301the", "the"]),
    ("metaspace_first", {"normalizer": replace({"Regex": "x+"}, ""), "pre_tokenizer": FIRST}, ["xxthe", "thex"]),
    ("metaspace_first", {"normalizer": replace({"Regex": "x+"}, "a"), "pre_tokenizer": FIRST}, ["xxthe", "xthe"]),
    ("gpt2", {"added_tokens": [added(0, "<|end|>"), added(467, "  ", lstrip=True, rstrip=True)]}, SPACES),
    ("gpt2", {"added_tokens": [added(0, "<|end|>"), added(467, "\n", rstrip=True)]}, SPACES),
    ("gpt2", {"added_tokens": [added(0, "<|end|>"), added(467, "\n", lstrip=True), added(89, "y", rstrip=True)]}, SPACES),
    ("bert", {"decoder": {"type": "WordPiece", "prefix": "", "cleanup": False}}, ["unhappy running"]),
]


def changed(folder, name, changes):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        state = json.load(file)
    for key, value in changes.items():
        *outer, last = key.split(".")
        (state[outer[0]] if outer else state)[last] = value
    return Tokenizer.from_str(json.dumps(state))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/models/data"
    cases = []
    for name, changes, texts in CASES:
        tokenizer = changed(folder, name, changes)
        for text in texts:
            ids = tokenizer.encode(text).ids
            cases.append({"file": name + ".json", "changes": changes, "text": text, "ids": ids,
                          "whole": tokenizer.decode(ids, skip_special_tokens=False)})
    with open(os.path.join(folder, "variants.json"), "w", encoding="utf-8") as file:
        file.write("[" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "]\n")


main()
