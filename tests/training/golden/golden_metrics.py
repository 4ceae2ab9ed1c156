#!/usr/bin/env python3
"""Writes golden_metrics.h: outputs and targets, and what metrics of them are, by their definitions: pairs are counted for the
area under the curve, outputs sorted for the k largest, examples looked at one by one.
"""
import pathlib

import numpy

NAN = float("nan")


def softmax(x):
    e = numpy.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def one_hot(classes, count):
    return numpy.eye(count)[classes]


def ratio(a, b):
    return a / b if b else 0.0


def mean_of(values):
    known = [v for v in values if v == v]
    return sum(known) / len(known) if known else NAN


def area(scores, positive):
    pairs = [(s > t) + 0.5 * (s == t) for s, p in zip(scores, positive) if p for t, q in zip(scores, positive) if not q]
    return sum(pairs) / len(pairs) if pairs else NAN


def classification(outputs, targets):
    columns = outputs.shape[1]
    classes = max(columns, 2)
    if columns == 1:
        true, said = [int(t > 0.5) for t in targets[:, 0]], [int(o > 0.5) for o in outputs[:, 0]]
    else:
        true, said = [list(t).index(max(t)) for t in targets], [list(o).index(max(o)) for o in outputs]
    result = {"confusion": [[sum(1 for t, s in zip(true, said) if (t, s) == (i, j)) for j in range(classes)] for i in range(classes)]}
    per = {"precision": [], "recall": [], "f1": []}
    support = [true.count(i) for i in range(classes)]
    for i in range(classes):
        hit = sum(1 for t, s in zip(true, said) if t == s == i)
        if not true.count(i) and not said.count(i):
            for values in per.values():
                values.append(NAN)
            continue
        p, r = ratio(hit, said.count(i)), ratio(hit, true.count(i))
        per["precision"].append(p)
        per["recall"].append(r)
        per["f1"].append(ratio(2 * p * r, p + r))
    for name, values in per.items():
        result[name + "_per_class"] = values
        result[name + "_macro"] = mean_of(values)
        result[name] = values[1] if columns == 1 else mean_of(values)
        result[name + "_weighted"] = sum(v * s for v, s in zip(values, support) if s) / len(true)
    result["f1_micro"] = sum(t == s for t, s in zip(true, said)) / len(true)
    areas = [area(outputs[:, i], targets[:, i] > 0.5) for i in range(columns)]
    result["roc_auc_per_class"] = areas
    result["roc_auc"] = mean_of(areas)
    if columns > 1:
        for k in (1, 2, 3):
            hits = [t in sorted(range(columns), key=lambda i: (-o[i], i))[:k] for t, o in zip(true, outputs)]
            result["top_%d" % k] = sum(hits) / len(hits)
        result["perplexity"] = numpy.exp(-numpy.mean([numpy.log(o[t]) for t, o in zip(true, outputs)]))
    else:
        result["binary_accuracy"] = result["f1_micro"]
        clear = [(o < 0.3 and not t) or (o > 0.7 and t) for t, o in zip(true, outputs[:, 0])]
        result["binary_accuracy_between"] = sum(clear) / len(clear)
        result["perplexity"] = numpy.exp(-numpy.mean([numpy.log(o if t else 1 - o) for t, o in zip(true, outputs[:, 0])]))
    return result


def regression(outputs, targets):
    errors = targets - outputs
    squared = []
    for e, t in zip(errors.T, targets.T):
        squared.append(NAN if len(set(t)) == 1 else 1 - numpy.mean(e * e) / numpy.var(t))
    return {"mean_absolute_error": numpy.abs(errors).mean(), "root_mean_squared_error": numpy.sqrt((errors**2).mean()),
            "maximum_error": numpy.abs(errors).max(), "r_squared": mean_of(squared)}


def text(value):
    return "NAN" if value != value else "%.17g" % value


def rows(array):
    flat = [text(float(v)) for v in numpy.asarray(array, dtype=float).ravel()]
    return ["    " + ", ".join(flat[i:i + 8]) + "," for i in range(0, len(flat), 8)]


def case(name, outputs, targets, results):
    lines = ["static const double %s_outputs[] = {" % name] + rows(outputs) + ["};"]
    lines += ["static const double %s_targets[] = {" % name] + rows(targets) + ["};"]
    tables = {k: v for k, v in results.items() if isinstance(v, list)}
    for key, value in tables.items():
        lines += ["static const double %s_%s[] = {" % (name, key)] + rows(value) + ["};"]
    lines += ["static const golden_number %s_numbers[] = {" % name]
    lines += ['    {"%s", %s},' % (k, text(float(v))) for k, v in results.items() if k not in tables]
    return lines + ["};", ""]


def main():
    random = numpy.random.default_rng(7)
    lines = ["/* Made by golden_metrics.py. */", "/* clang-format off */",
             "typedef struct golden_number {", "    const char *name;", "    double value;", "} golden_number;", ""]
    # two decimals, so that outputs are equal now and then; in every row there is one above 0
    classes = random.integers(0, 4, 60)
    outputs = numpy.round(softmax(1.2 * one_hot(classes, 4) + random.normal(size=(60, 4))), 2) + 0.01
    lines += case("four", outputs, one_hot(classes, 4), classification(outputs, one_hot(classes, 4)))
    # class 3 is predicted though it has no examples, class 4 is nowhere
    classes = random.integers(0, 3, 40)
    logits = 1.5 * one_hot(classes, 5) + random.normal(size=(40, 5))
    logits[:, 4] = -9
    outputs = softmax(logits)
    lines += case("rare", outputs, one_hot(classes, 5), classification(outputs, one_hot(classes, 5)))
    classes = random.integers(0, 2, 50)
    outputs = numpy.clip(numpy.round(0.5 + 0.2 * (2 * classes - 1) + 0.25 * random.normal(size=50), 1), 0.05, 0.95)
    lines += case("binary", outputs[:, None], classes[:, None], classification(outputs[:, None], classes[:, None]))
    # only one class
    outputs = softmax(random.normal(size=(12, 3)))
    lines += case("single", outputs, one_hot([1] * 12, 3), classification(outputs, one_hot([1] * 12, 3)))
    targets = random.normal(size=(30, 3)) * [1, 10, 0] + [5, -3, 0.1]
    outputs = targets + random.normal(size=(30, 3)) * [0.5, 2, 0.1]
    lines += case("numbers", outputs, targets, regression(outputs, targets))
    pathlib.Path(__file__).with_name("golden_metrics.h").write_text("\n".join(lines))


main()
