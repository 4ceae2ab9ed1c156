#!/usr/bin/env python3
"""Losses of encoders of tests/models/fixtures with new last layers, and of their vectors, as transformers 5.24 and
PyTorch 2.15 have them: prints heads_torch.h.

    python3 tests/models/heads_torch.py tests/models/fixtures
    python3 tests/models/heads_torch.py --check FOLDER CLASS...    (reads a classifier that Sigma wrote)

Texts are numbers of tokens by a formula (row), as test_heads.c has it, and so are the weights that the new layers
begin with (begin). Gains of norms get 1 more: those of the fixtures of BERT are near 0, so that all texts are alike. A step has 12 texts: of three classes; or of 6 pairs, or 4 triples, which are compared with
MultipleNegativesRankingLoss of sentence-transformers, written out.
"""
import math
import sys

import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoModelForSequenceClassification

TIME, STEPS, TEXTS, TEMPERATURE = 12, 20, 12, 0.05
CLASSIFIERS = {"bert_embed": ["classifier"], "roberta_fill": ["classifier.dense", "classifier.out_proj"],
               "distilbert_fill": ["pre_classifier", "classifier"]}


def row(i):
    length = 3 + 5 * i % 10
    return [2 + (31 * i + 17 * k + 7 * i * k) % 59 if k < length else 0 for k in range(TIME)], length


def batch(step):
    rows = [row(step * TEXTS + i) for i in range(TEXTS)]
    mask = torch.tensor([[float(k < length) for k in range(TIME)] for _, length in rows])
    return torch.tensor([tokens for tokens, _ in rows]), mask


def begin(module):
    outputs, inputs = module.weight.shape
    module.weight.data = torch.tensor([[0.2 * math.sin(0.7 * (o * inputs + i) + 0.3) for i in range(inputs)]
                                       for o in range(outputs)])
    module.bias.data = torch.tensor([0.1 * math.sin(1.3 * o) for o in range(outputs)])


def widen(model):
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.data += 1
    return model


def train(parameters, loss_of):
    optimiser = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)
    losses = []
    for step in range(STEPS):
        loss = loss_of(*batch(step))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def classify(path, names):
    model = widen(AutoModelForSequenceClassification.from_pretrained(path, num_labels=3, attn_implementation="eager")).eval()
    for name in names:
        begin(model.get_submodule(name))
    targets = torch.arange(TEXTS) % 3
    return train(model.parameters(),
                 lambda tokens, mask: F.cross_entropy(model(tokens, attention_mask=mask).logits, targets))


def embed(path, group):
    model = widen(AutoModel.from_pretrained(path, attn_implementation="eager")).eval()

    def loss(tokens, mask):
        states = model(tokens, attention_mask=mask).last_hidden_state
        vectors = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        rows = vectors.reshape(TEXTS // group, group, -1)
        others = rows[:, 1:].transpose(0, 1).reshape(-1, rows.shape[-1])
        scores = F.normalize(rows[:, 0], dim=1) @ F.normalize(others, dim=1).T / TEMPERATURE
        return F.cross_entropy(scores, torch.arange(TEXTS // group))

    return train([p for name, p in model.named_parameters() if "pooler" not in name], loss)


def show(name, losses):
    print("static const float %s[] = {" % name)
    for i in range(0, STEPS, 5):
        print("    " + ", ".join("%.9gF" % loss for loss in losses[i:i + 5]) + ",")
    print("};")


def check(folder, classes):
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    assert [model.config.id2label[i] for i in range(model.config.num_labels)] == classes, model.config.id2label
    tokens, mask = batch(0)
    print(model(tokens, attention_mask=mask).logits.softmax(-1))


if sys.argv[1] == "--check":
    check(sys.argv[2], sys.argv[3:])
else:
    print("/* Made by heads_torch.py with transformers 5.24 and PyTorch %s. */" % torch.__version__.split("+")[0])
    print("/* clang-format off */")
    for fixture, heads in CLASSIFIERS.items():
        show("%s_classes" % fixture, classify("%s/%s" % (sys.argv[1], fixture), heads))
    for group, what in (2, "pairs"), (3, "triples"):
        show("bert_embed_%s" % what, embed("%s/bert_embed" % sys.argv[1], group))
