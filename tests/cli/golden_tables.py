"""The figures of scikit-learn for the tables of tables.awk, for comparison: golden_tables.py passengers.csv houses.csv

The same preprocessing (means, standard deviations, one-hot categories), network, optimiser, minibatches and epochs, on the
first 8,000 rows, measured on the last 2,000. Printed are the mean and the extremes of ten seeds. test_tables.sh has them.
"""
import csv
import datetime
import sys

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

MISSING = {"", "NA", "?"}


def read(path, target, drop, categorical):
    rows = list(csv.DictReader(open(path)))
    columns = []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        if name in drop or name == target:
            continue
        known = [c for c in cells if c not in MISSING]
        if known[0].count("-") == 2:
            cells = known = [str(datetime.date.fromisoformat(c).toordinal()) for c in cells]
        try:
            values = np.array([np.nan if c in MISSING else float(c) for c in cells])
        except ValueError:
            values = None
        if values is None or name in categorical:
            for kind in sorted(set(known)):
                columns.append(np.array([float(c == kind) for c in cells]))
            continue
        mean, deviation = np.nanmean(values), np.nanstd(values)
        columns.append((np.where(np.isnan(values), mean, values) - mean) / deviation)
    return np.stack(columns, 1), [row[target] for row in rows]


def report(name, scores):
    print("%s: mean %.4f, %.4f to %.4f" % (name, np.mean(scores), min(scores), max(scores)))


def network(kind, seed):
    return kind(hidden_layer_sizes=(64, 64), activation="relu", solver="adam", alpha=0, batch_size=32, learning_rate_init=0.001,
                max_iter=10, random_state=seed, tol=0, n_iter_no_change=1000)


x, y = read(sys.argv[1], "survived", {"id", "name"}, {"class"})
report("passengers, accuracy", [network(MLPClassifier, s).fit(x[:8000], y[:8000]).score(x[8000:], y[8000:]) for s in range(10)])
x, y = read(sys.argv[2], "price", {"id", "note"}, set())
y = np.array(y, float)
y = (y - y.mean()) / y.std()
report("houses, R squared", [network(MLPRegressor, s).fit(x[:8000], y[:8000]).score(x[8000:], y[8000:]) for s in range(10)])
