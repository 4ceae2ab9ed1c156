#!/usr/bin/env python3
"""The numbers of test_eval_lines.sh, by transformers in float64: python3 tests/cli/eval_lines.py

Each example is its tokens, letters from 1 and a space 0 with the end 59 behind them, and the first of its
tokens that is to be learnt. Prints how many are, the mean of their cross-entropy, the share of those that are
the likeliest, and the perplexity.
"""
import math
import os

import torch
from transformers import GPT2LMHeadModel

END = 59
EXAMPLES = [("abc", 1), ("abcdefg", 2), ("the quick brown fox", 1)]


def main():
    folder = os.path.join(os.path.dirname(__file__), "../models/fixtures/gpt2")
    model = GPT2LMHeadModel.from_pretrained(folder).double().eval()
    surprise, right, count = 0.0, 0, 0
    for text, first in EXAMPLES:
        tokens = [0 if c == " " else ord(c) - 96 for c in text] + [END]
        with torch.no_grad():
            logs = model(input_ids=torch.tensor([tokens])).logits[0].log_softmax(-1)
        for i in range(first, len(tokens)):
            surprise -= logs[i - 1, tokens[i]].item()
            right += logs[i - 1].argmax().item() == tokens[i]
            count += 1
    print(count, surprise / count, right / count, math.exp(surprise / count))


main()
