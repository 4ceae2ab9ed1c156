#!/usr/bin/env python3
"""Makes tests/models/data/encodings.json: what the library `tokenizers` makes of texts and pairs of them, with and without
special tokens and a limit, by the files beside it.

    tests/cross/make_encodings.py [FOLDER]

Made with tokenizers 0.23.3.
"""
import json
import os
import sys

from tokenizers import Tokenizer

TEXTS = [("The quick brown fox don't jump.", None), ("Is it 2026?", "No, the lazy dog is unhappy, not running!"),
         ("hello world hello world hello", "a"), ("", None), ("", "pair"), ("wörld [MASK]  </s> \U0001f600", "x</s>y")]
LIMITS = [None, 4, 5, 7, 8, 11]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/models/data"
    cases = []
    for name in ("bert", "roberta", "llama2", "gpt2"):
        path = os.path.join(folder, name + ".json")
        for text, pair in TEXTS:
            for special in (True, False):
                for limit in LIMITS:
                    tokenizer = Tokenizer.from_file(path)
                    if limit:
                        tokenizer.enable_truncation(limit)
                    encoding = tokenizer.encode(text, pair, add_special_tokens=special)
                    cases.append({"file": name + ".json", "text": text, "pair": pair, "special": special, "longest": limit or 0,
                                  "ids": encoding.ids, "segments": encoding.type_ids,
                                  "whole": tokenizer.decode(encoding.ids, skip_special_tokens=False),
                                  "plain": tokenizer.decode(encoding.ids, skip_special_tokens=True)})
    with open(os.path.join(folder, "encodings.json"), "w") as file:
        file.write("[" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "]\n")


main()
