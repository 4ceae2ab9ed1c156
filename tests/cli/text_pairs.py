#!/usr/bin/env python3
"""The numbers of test_text_pairs.sh, by transformers in float64: python3 tests/cli/text_pairs.py

For each fixture with classes and a vocabulary of words: what its tokenizer makes of a pair of texts, the
probabilities of the classes, and for BERT and DistilBERT the same where all tokens count to the first text; then the loss
of LINES before each of six steps of gradient descent. RoBERTa's tokenizer is the byte-level one of roberta_letters.json.
"""
import os
import tempfile

import torch
from transformers import AutoModelForSequenceClassification, BertTokenizer, PreTrainedTokenizerFast

WORDS = "[PAD] [UNK] [CLS] [SEP] a b c d e f g h".split()
PAIRS = [("a b", "c d e"), ("h", "a b c d e f g h a b c d e f g h a b c d e f g h")]
# The first text is cut, and both are.
LONG_PAIRS = [("a b c d e f g h a b c d e f g h", "h g"), ("a b c d e f g h a b c d e", "a b c d e f g h a b c")]

LINES = [("a b", "a b", 0), ("c", "c", 0), ("d e", "d e", 1), ("a b", "c d", 1), ("c", "h g", 2), ("d e", "a", 2)]


def train(folder, tokenizer):
    model = AutoModelForSequenceClassification.from_pretrained(folder).double()
    batch = tokenizer([line[0] for line in LINES], [line[1] for line in LINES], padding=True, return_tensors="pt")
    targets = torch.tensor([line[2] for line in LINES])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(6):
        loss = model(**batch, labels=targets).loss
        print(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def roberta(folder):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(os.path.dirname(__file__), "roberta_letters.json"),
        pad_token="<pad>", model_input_names=["input_ids", "attention_mask"])
    model = AutoModelForSequenceClassification.from_pretrained(folder).double().eval()
    longest = model.config.max_position_embeddings - model.config.pad_token_id - 1
    for text, pair in PAIRS + LONG_PAIRS:
        tokens = tokenizer(text, pair, return_tensors="pt", truncation="longest_first", max_length=longest)
        with torch.no_grad():
            print("roberta_classify", tokens["input_ids"].tolist(), model(**tokens).logits.softmax(-1).tolist())
    train(folder, tokenizer)


def main():
    fixtures = os.path.join(os.path.dirname(__file__), "../models/fixtures")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(WORDS) + "\n")
        file.flush()
        tokenizer = BertTokenizer(file.name)
    for name in ("bert_classify", "distilbert_classify"):
        model = AutoModelForSequenceClassification.from_pretrained(os.path.join(fixtures, name)).double().eval()
        for text, pair in PAIRS:
            tokens = tokenizer(text, pair, return_tensors="pt", truncation="longest_first", max_length=24)
            if name != "bert_classify":
                del tokens["token_type_ids"]
            with torch.no_grad():
                print(name, tokens["input_ids"].tolist(), tokens.get("token_type_ids"),
                      model(**tokens).logits.softmax(-1).tolist(),
                      model(input_ids=tokens["input_ids"]).logits.softmax(-1).tolist())
    train(os.path.join(fixtures, "bert_classify"), tokenizer)
    roberta(os.path.join(fixtures, "roberta_classify"))


main()
