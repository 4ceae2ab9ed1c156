#!/usr/bin/env python3
"""Vectors of sentences of mixed lengths, here and in ONNX Runtime: a model as sentence-transformers keeps it.

    sentences.py FOLDER [BUILD]            (BUILD: default build/release)

The sentences are some of the manual's. Both put them in order of their length. There 32 are computed at once,
here as many as have 128 tokens together; or one at a time. Prints milliseconds for all sentences, medians of rounds after a first one, and how far
the vectors differ at most. Times here have the tokens in them; those of ONNX Runtime do not.

Environment:
  THREADS   of both ("1 2")
  ROUNDS    of each process (5)
  COUNT     sentences (1000)
"""
import os
import re
import statistics
import subprocess
import sys
import time

TOLERANCE = 1e-5
COUNT, BATCH = int(os.environ.get("COUNT", "1000")), 32


def sentences(root):
    """Of the manual, in an order that does not depend on the machine: from a word to a paragraph."""
    lines = []
    for name in sorted(os.listdir(os.path.join(root, "docs", "manual"))):
        text = re.sub(r"```.*?```", " ", open(os.path.join(root, "docs", "manual", name)).read(), flags=re.S)
        for part in re.split(r"(?<=[.:;])\s+|\n\n+", text):
            words = " ".join(part.replace("|", " ").split())
            if words:
                lines.append(words)
    step = max(len(lines) // COUNT, 1)
    return lines[::step][:COUNT]


def write_model(folder, path):
    """The encoder, the mean of its vectors and their length as an ONNX model of any number of tokens."""
    import torch
    from transformers import AutoModel

    class Sentences(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, tokens, mask):
            vectors = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
            mean = (vectors * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            return torch.nn.functional.normalize(mean, dim=-1)

    example = torch.ones(2, 7, dtype=torch.long)
    axes = {"tokens": {0: "n", 1: "t"}, "mask": {0: "n", 1: "t"}, "vectors": {0: "n"}}
    torch.onnx.export(Sentences(), (example, example), path, dynamo=False, input_names=["tokens", "mask"],
                      output_names=["vectors"], dynamic_axes=axes, opset_version=17)


def run_theirs(model, folder, threads, rounds, lines, output, *one):
    import numpy
    import onnxruntime
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    encoded = [e.ids for e in tokenizer.encode_batch(open(lines).read().splitlines())]
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    size = 1 if one else BATCH
    groups = []
    for first in range(0, len(order), size):
        rows = order[first:first + size]
        tokens = numpy.zeros((len(rows), len(encoded[rows[0]])), numpy.int64)
        mask = numpy.zeros_like(tokens)
        for k, row in enumerate(rows):
            tokens[k, :len(encoded[row])], mask[k, :len(encoded[row])] = encoded[row], 1
        groups.append((rows, {"tokens": tokens, "mask": mask}))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    times, vectors = [], None
    for _ in range(int(rounds) + 1):
        begin = time.perf_counter()
        results = [session.run(None, given)[0] for _, given in groups]
        times.append(time.perf_counter() - begin)
    vectors = numpy.zeros((len(encoded), results[0].shape[1]), numpy.float32)
    for (rows, _), result in zip(groups, results):
        vectors[rows] = result
    numpy.save(output, vectors[-1:] if one else vectors)
    print("%.1f %.1f" % (times[0] * 1e3, statistics.median(times[1:]) * 1e3))


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("sentences: %s\n%s" % (" ".join(command), done.stderr))
    return [float(word) for word in done.stdout.split()]


def main(folder, build):
    try:
        import numpy
        import onnxruntime
        import torch
        import transformers
    except ImportError as error:
        print("sentences: %s; pip install onnxruntime onnx torch transformers, then PYTHON=..." % error)
        return 0
    work = os.path.join(build, "sentences")
    os.makedirs(work, exist_ok=True)
    model, lines = os.path.join(work, "model.onnx"), os.path.join(work, "lines.txt")
    write_model(folder, model)
    with open(lines, "w") as file:
        file.write("".join(line + "\n" for line in sentences(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    program, worst = os.path.join(build, "bench", "sentences"), 0
    print("ONNX Runtime %s; ms of all sentences, load average %.1f" % (onnxruntime.__version__, os.getloadavg()[0]))
    print("%-8s %-7s %9s %9s %6s %9s %9s %8s" % ("threads", "at once", "ours", "theirs", "ratio", "first", "theirs", "differ"))
    for threads in os.environ.get("THREADS", "1 2").split():
        for one in ([], ["one"]):
            outputs = [os.path.join(work, who + ".npy") for who in ("ours", "theirs")]
            rounds = os.environ.get("ROUNDS", "5")
            ours = measure([program, folder, threads, rounds, lines, outputs[0], *one])
            theirs = measure([sys.executable, __file__, "--run", model, folder, threads, rounds, lines, outputs[1], *one])
            a, b = numpy.load(outputs[0]), numpy.load(outputs[1])
            differ = 0 if one else float(numpy.abs(a - b).max())
            worst = max(worst, differ)
            print("%-8s %-7s %9.1f %9.1f %6.2f %9.1f %9.1f %8.1e" % (
                threads, "1" if one else BATCH, ours[1], theirs[1], ours[1] / theirs[1], ours[0], theirs[0], differ), flush=True)
    if worst > TOLERANCE:
        print("sentences: vectors differ by more than %g" % TOLERANCE, file=sys.stderr)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_theirs(*sys.argv[2:])
    elif len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
    else:
        sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "build/release"))
