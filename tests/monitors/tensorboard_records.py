"""Makes the examples of test_tensorboard.c with TensorBoard's own writer, and reads a training's files with its
own reader. Not part of the tests; needs `pip install tensorboard` in a virtual environment.

    python tests/monitors/tensorboard_records.py               prints the examples
    python tests/monitors/tensorboard_records.py runs/x        what TensorBoard reads from the folder
"""
import io
import os
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def show(name, **event):
    made = io.BytesIO()
    RecordWriter(made).write(event_pb2.Event(**event).SerializeToString())
    print(name, made.getvalue().hex())


def scalars():
    summary = summary_pb2.Summary()
    summary.value.add(tag="loss/training", simple_value=0.25)
    summary.value.add(tag="learning_rate", simple_value=-3e-4)
    return summary


def histogram():
    summary = summary_pb2.Summary()
    histo = summary.value.add(tag="w").histo
    values, width, counts = [-1.0, 0.5, 2.0, 2.0], 3.0 / 30, [0] * 30
    histo.min, histo.max, histo.num = -1, 2, 4
    histo.sum, histo.sum_squares = sum(values), sum(x * x for x in values)
    for k in range(30):
        histo.bucket_limit.append(2.0 if k == 29 else -1.0 + width * (k + 1))
    for x in values:
        counts[min(29, int((x + 1) / width))] += 1
    histo.bucket.extend(counts)
    return summary


def equal():
    summary = summary_pb2.Summary()
    histo = summary.value.add(tag="w").histo
    histo.min = histo.max = 7
    histo.num, histo.sum, histo.sum_squares = 3, 21, 147
    histo.bucket_limit.append(7)
    histo.bucket.append(3)
    return summary


def make():
    show("version", wall_time=1.5, file_version="brain.Event:2")
    show("scalars", wall_time=1763749014.125, step=300, summary=scalars())
    show("histogram", wall_time=2, step=1, summary=histogram())
    show("equal", wall_time=2, step=1, summary=equal())
    show("restart", wall_time=3, step=5, session_log=event_pb2.SessionLog(status=1))


def read(folder):
    found = False
    for place, _, files in sorted(os.walk(folder)):
        if not any("tfevents" in name for name in files):
            continue
        found = True
        events = EventAccumulator(place, size_guidance={"scalars": 0, "histograms": 0})
        events.Reload()
        for tag in sorted(events.Tags()["scalars"]):
            points = events.Scalars(tag)
            print(f"{place}: {tag}: {len(points)} points, the last ({points[-1].step}, {points[-1].value:.6g})")
        for tag in sorted(events.Tags()["histograms"]):
            newest = events.Histograms(tag)[-1]
            value = newest.histogram_value
            print(f"{place}: {tag}: histograms, the last at {newest.step} of {value.num:g} values "
                  f"from {value.min:.6g} to {value.max:.6g}, {sum(value.bucket):g} in buckets")
    if not found:
        sys.exit(f"{folder}: no files of events")


if len(sys.argv) > 1:
    read(sys.argv[1])
else:
    make()
