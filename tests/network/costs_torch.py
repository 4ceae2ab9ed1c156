#!/usr/bin/env python3
"""Costs as PyTorch 2.15 computes them in float64: prints costs_torch.h."""
import torch
import torch.nn.functional as F
from values_torch import Cases, numbers, shares

cases = Cases("costs_torch.py", "costs_torch")


def one_hot(classes, count):
    return F.one_hot(classes, count).double()


def cost(text, batch, run, targets, *shape, scale=2.0, output=lambda x: x):
    cases.add(text, batch, lambda d: (run(d["inputs"], d["targets"]), output(d["inputs"])), {"targets": targets},
              inputs=numbers(batch, *shape, which=1, scale=scale))


def softmax(x):
    return x.softmax(-1)


values = numbers(3, 2, 4, which=2, scale=2)
cost("input(2, 4) + root_mean_squared", 3, lambda x, t: F.mse_loss(x, t).sqrt(), values, 2, 4)
cost("input(2, 4) + mean_absolute", 3, F.l1_loss, values, 2, 4)
cost("input(2, 4) + huber", 3, F.huber_loss, values, 2, 4)
cost("input(2, 4) + huber(delta=0.4)", 3, lambda x, t: F.huber_loss(x, t, delta=0.4), values, 2, 4)
cost("input(5) + cosine_distance", 4,
     lambda x, t: F.cosine_embedding_loss(x, t, torch.ones(4)), numbers(4, 5, which=3), 5)

cost("input(4) + kl_divergence", 3, lambda x, t: F.kl_div(x.log_softmax(-1), t, reduction="batchmean"),
     shares(3, 4, which=4), 4, output=softmax)
cost("input(4) + kl_divergence", 3, lambda x, t: F.kl_div(x.log_softmax(-1), t, reduction="batchmean"),
     one_hot(torch.tensor([2, 0, 3]), 4), 4, output=softmax)
cost("input(2, 4) + kl_divergence", 3,
     lambda x, t: F.kl_div(x.log_softmax(-1).reshape(6, 4), t.reshape(6, 4), reduction="batchmean"),
     shares(3, 2, 4, which=4), 2, 4, output=softmax)

classes = torch.tensor([2, 0, 3, 1, 1])
weights = torch.tensor([1, 2.5, 0.25, 3])
cost("input(4) + softmax_cross_entropy(classes, label_smoothing=0.1)", 5,
     lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), classes, 4, output=softmax)
cost("input(4) + softmax_cross_entropy(classes, class_weights=(1, 2.5, 0.25, 3))", 5,
     lambda x, t: F.cross_entropy(x, t, weights, reduction="none").mean(), classes, 4, output=softmax)
cost("input(4) + softmax_cross_entropy(label_smoothing=0.2, class_weights=(1, 2.5, 0.25, 3))", 5,
     lambda x, t: F.cross_entropy(x, t, weights, label_smoothing=0.2), shares(5, 4, which=5), 4, output=softmax)
cost("input(2, 4) + softmax_cross_entropy(label_smoothing=0.2, class_weights=(1, 2.5, 0.25, 3))", 3,
     lambda x, t: F.cross_entropy(x.transpose(1, 2), t, weights, label_smoothing=0.2, reduction="none").mean(),
     torch.tensor([[0, 3], [1, 1], [2, 0]]), 2, 4, output=softmax)


def focused(x, t, gamma):
    """Lin et al., 2017, equation 4, for each class."""
    p = x.softmax(-1).gather(1, t[:, None]).squeeze(1)
    return -((1 - p) ** gamma * p.log()).mean()


cost("input(4) + softmax_cross_entropy(classes, gamma=2)", 5, lambda x, t: focused(x, t, 2), classes, 4, output=softmax)
cost("input(4) + softmax_cross_entropy(classes, gamma=0.5)", 5, lambda x, t: focused(x, t, 0.5), classes, 4,
     output=softmax)


def sigmoid_focal(x, t, alpha=0.25, gamma=2.0):
    """As torchvision.ops.sigmoid_focal_loss has it, summed up for each example."""
    p = torch.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none") * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
    if alpha > 0:
        loss = (alpha * t + (1 - alpha) * (1 - t)) * loss
    return loss.sum(1).mean()


yes = (numbers(4, 3, which=6) > 0).double()
cost("input(3) + focal", 4, sigmoid_focal, yes, 3, scale=4.0, output=torch.sigmoid)
cost("input(3) + focal(gamma=0.5, alpha=0)", 4, lambda x, t: sigmoid_focal(x, t, 0, 0.5), yes, 3,
     output=torch.sigmoid)

signs = 2 * yes - 1
cost("input(3) + hinge", 4, lambda x, t: (1 - (2 * t - 1) * x).clamp(min=0).mean(), yes, 3,
     output=lambda x: (x + 1) / 2)
cost("input(3) + hinge(margin=0.5, squared)", 4, lambda x, t: ((0.5 - t * x).clamp(min=0) ** 2).mean(), signs, 3,
     output=lambda x: x + 0.5)
cost("input(4) + multi_class_hinge(classes)", 5, F.multi_margin_loss, classes, 4)
cost("input(4) + multi_class_hinge(margin=0.7, squared)", 5,
     lambda x, t: F.multi_margin_loss(x, t.argmax(1), p=2, margin=0.7), one_hot(classes, 4), 4)

cases.add("input(3, 4) + triplet(margin=1.5)", 3,
          lambda d: (F.triplet_margin_loss(*d["inputs"].unbind(1), margin=1.5), d["inputs"]),
          inputs=numbers(3, 3, 4, which=7))


def hardest(x, t, margin):
    """Hermans et al., 2017: all distances written out."""
    far = torch.cdist(x.detach(), x.detach())
    same = t[:, None] == t[None, :]
    positive, negative = far.where(same, -1).argmax(1), far.where(~same, 1e9).argmin(1)
    return F.triplet_margin_loss(x, x[positive], x[negative], margin=margin)


cost("input(4) + triplet(margin=0.5)", 6, lambda x, t: hardest(x, t, 0.5), torch.tensor([0, 1, 0, 2, 1, 0]), 4, scale=1.0)



def info_nce(x, temperature=0.05):
    """(examples, rows, features): MultipleNegativesRankingLoss of sentence-transformers, for its vectors."""
    a, candidates = x[:, 0], x[:, 1:].transpose(0, 1).reshape(-1, x.shape[-1])
    scores = F.normalize(a, dim=1) @ F.normalize(candidates, dim=1).T / temperature
    return F.cross_entropy(scores, torch.arange(len(a)))


def varied(*shape, which):
    return torch.sin(numbers(*shape, which=which, scale=40))


cases.add("input(2, 5) + info_nce", 4, lambda d: (info_nce(d["inputs"]), d["inputs"]),
          inputs=varied(4, 2, 5, which=16))
cases.add("input(4, 5) + info_nce(temperature=0.5)", 3, lambda d: (info_nce(d["inputs"], 0.5), d["inputs"]),
          inputs=varied(3, 4, 5, which=17))
cases.add("input(5) + info_nce(temperature=0.2)", 6,
          lambda d: (info_nce(d["inputs"].reshape(3, 2, 5), 0.2), d["inputs"]), inputs=varied(6, 5, which=18))
cases.add("input(5) + info_nce(group=3)", 6,
          lambda d: (info_nce(d["inputs"].reshape(2, 3, 5)), d["inputs"]), inputs=varied(6, 5, which=19))

# two outputs, whose costs are added up
mixed = {"price": numbers(3, 1, which=8), "kind": torch.tensor([1, 0, 2])}


def both(d):
    hidden = torch.tanh(d["inputs"] @ d["hidden.weights"] + d["hidden.biases"])
    price = hidden @ d["first.weights"] + d["first.biases"]
    kind = hidden @ d["second.weights"] + d["second.biases"]
    return 0.25 * F.huber_loss(price, d["price"]) + 3 * F.cross_entropy(kind, d["kind"]), price


cases.add("hidden = input(4) + dense(5, tanh, name=hidden);"
          " hidden + dense(1, name=first) + huber(targets=price, importance=0.25);"
          " hidden + dense(3, name=second) + softmax_cross_entropy(classes, targets=kind, importance=3)", 3, both, mixed,
          inputs=numbers(3, 4, which=9), hidden__weights=numbers(4, 5, which=10),
          hidden__biases=numbers(5, which=11), first__weights=numbers(5, 1, which=12), first__biases=numbers(1, which=13),
          second__weights=numbers(5, 3, which=14), second__biases=numbers(3, which=15))
cases.write()
