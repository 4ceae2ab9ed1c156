#!/usr/bin/env python3
"""Inference here and in ONNX Runtime, the same ONNX models: latency, throughput, loading.

    infer.py [BUILD]            (default build/release)

Makes models with random weights (PyTorch's exporter; kept in BUILD/infer, with their inputs), and runs each here
(BUILD/bench/infer) and in ONNX Runtime, processes in turns. Prints, for one record and for a batch, the medians of a run,
the ratio ours / theirs (below 1 is faster here), for one record also of loading with the first run, and how far the outputs differ,
as a share of the largest. An output that differs by more than 1e-4 is an error. Without onnxruntime, or torch and onnx
for making models, it says so and does nothing.

Environment:
  MODELS        of these alone
  THREADS       of both (1)
  BATCH         records of the second run (64)
  ROUNDS        turns (5)
  SECONDS_EACH  of each process (0.5), after loading
  INT8          1: in int8, ours by .quantize, theirs by quantize_dynamic with signed weights, a scale for each column; outputs
                may differ by a fifth then
"""
import os
import statistics
import subprocess
import sys
import time

TOLERANCE = 1e-4
TOLERANCE_INT8 = 0.2
OPSET = 17


def make_models(torch):
    """Functions that make a network, by name, each with the shape of a record; whole numbers below the third, if any."""
    nn = torch.nn

    def convolution(inputs, outputs, size, stride=1, groups=1, activation=nn.ReLU, bias=False):
        parts = [nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=bias), nn.BatchNorm2d(outputs)]
        return nn.Sequential(*parts, *([activation()] if activation else []))

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.body = nn.Sequential(convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3, activation=None))
            same = stride == 1 and inputs == outputs
            self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride, activation=None)

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    class Inverted(nn.Module):
        def __init__(self, inputs, outputs, stride, expansion):
            super().__init__()
            wide = inputs * expansion
            self.same = stride == 1 and inputs == outputs
            self.body = nn.Sequential(
                *([convolution(inputs, wide, 1, activation=nn.ReLU6)] if expansion != 1 else []),
                convolution(wide, wide, 3, stride, wide, nn.ReLU6), convolution(wide, outputs, 1, activation=None))

        def forward(self, x):
            return x + self.body(x) if self.same else self.body(x)

    def cnn():
        return nn.Sequential(
            convolution(3, 32, 3), convolution(32, 32, 3), nn.MaxPool2d(2), convolution(32, 64, 3), convolution(64, 64, 3),
            nn.MaxPool2d(2), convolution(64, 128, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))

    def resnet18():
        stages = []
        for inputs, outputs, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
            stages += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        return nn.Sequential(convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(512, 1000))

    def mobilenet():
        stages, inputs = [convolution(3, 32, 3, 2, activation=nn.ReLU6)], 32
        for expansion, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                                  (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                stages.append(Inverted(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        return nn.Sequential(*stages, convolution(320, 1280, 1, activation=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(1280, 1000))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            def pair(a, b):
                return nn.Sequential(convolution(a, b, 3), convolution(b, b, 3))
            widths = (32, 64, 128, 256)
            self.down = nn.ModuleList([pair(a, b) for a, b in zip((3, *widths), widths)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:-1]])
            self.join = nn.ModuleList([pair(2 * w, w) for w in widths[:-1]])
            self.head = nn.Conv2d(widths[0], 2, 1)

        def forward(self, x):
            kept = []
            for i, stage in enumerate(self.down):
                x = stage(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for i in (2, 1, 0):
                x = self.join[i](torch.cat([kept[i], self.up[i](x)], 1))
            return self.head(x)

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.embedding, self.layers, self.head = nn.Embedding(65, 128), kind(128, 256, 2, batch_first=True), nn.Linear(256, 65)

        def forward(self, x):
            return self.head(self.layers(self.embedding(x))[0])

    class Block(nn.Module):
        """Written out, as the exporter knows no nn.TransformerEncoderLayer that runs fast."""
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.norm, self.hidden_norm = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.hidden, self.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            n, t, w = x.shape
            split = lambda y: y.view(-1, t, self.heads, w // self.heads).transpose(1, 2)
            y = self.norm(x)
            q, k, v = split(self.q(y)), split(self.k(y)), split(self.v(y))
            scores = torch.softmax(q @ k.transpose(2, 3) * (w // self.heads) ** -0.5, -1)
            x = x + self.out((scores @ v).transpose(1, 2).reshape(-1, t, w))
            return x + self.output(nn.functional.gelu(self.hidden(self.hidden_norm(x))))

    class Text(nn.Module):
        def __init__(self, vocabulary, time, width, heads, blocks):
            super().__init__()
            self.embedding, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(time, width))
            self.blocks, self.norm = nn.Sequential(*(Block(width, heads) for _ in range(blocks))), nn.LayerNorm(width)

        def forward(self, x):
            return self.norm(self.blocks(self.embedding(x) + self.places)).mean(1)

    class Vit(nn.Module):
        def __init__(self, width=192, heads=3, blocks=12):
            super().__init__()
            self.patches, self.first = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.randn(1, 1, width))
            self.places = nn.Parameter(torch.randn(197, width))
            self.blocks, self.norm = nn.Sequential(*(Block(width, heads) for _ in range(blocks))), nn.LayerNorm(width)
            self.head = nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.blocks(x))[:, 0])

    def mlp():
        return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))

    return {
        "mlp": (mlp, (784,)),
        "cnn": (cnn, (3, 32, 32)),
        "resnet18": (resnet18, (3, 224, 224)),
        "mobilenet": (mobilenet, (3, 224, 224)),
        "unet": (UNet, (3, 128, 128)),
        "lstm": (lambda: Recurrent(nn.LSTM), (64,), 65),
        "gru": (lambda: Recurrent(nn.GRU), (64,), 65),
        "encoder": (lambda: Text(1000, 64, 128, 4, 4), (64,), 1000),
        "minilm": (lambda: Text(30522, 128, 384, 12, 6), (128,), 30522),
        "vit": (Vit, (3, 224, 224)),
        "depthwise3": (lambda: nn.Conv2d(96, 96, 3, 1, 1, groups=96), (96, 56, 56)),
        "depthwise5": (lambda: nn.Conv2d(96, 96, 5, 1, 2, groups=96), (96, 56, 56)),
    }


def write(torch, folder, name, batch):
    """NAME.onnx, and NAME-1.pb and NAME-BATCH.pb, where they are not there yet."""
    import onnx
    make, shape, *below = make_models(torch)[name]
    torch.manual_seed(1)
    example = torch.randint(below[0], (1, *shape)) if below else torch.randn(1, *shape)
    model = make()
    for module in model.modules():  # as after training: no batch norm is the identity
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
    path = os.path.join(folder, name + ".onnx")
    if not os.path.exists(path):
        # PRESERVE: batch norm stays a node, for the runtimes to fold
        torch.onnx.export(model.eval(), example, path, dynamo=False, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, opset_version=OPSET,
                          training=torch.onnx.TrainingMode.PRESERVE)
    for count in (1, batch):
        values = torch.randint(below[0], (count, *shape)) if below else torch.randn(count, *shape)
        with open(os.path.join(folder, "%s-%d.pb" % (name, count)), "wb") as file:
            file.write(onnx.numpy_helper.from_array(values.numpy(), "x").SerializeToString())


def quantize(path):
    """The model in int8, as ONNX Runtime makes it; kept beside it."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    rounded = path.replace(".onnx", "-int8.onnx")
    if not os.path.exists(rounded):
        quantize_dynamic(path, rounded, weight_type=QuantType.QInt8, per_channel=True)
    return rounded


def run_theirs(model, threads, seconds, output, given):
    """As bench/infer.c: milliseconds of loading with the first run, microseconds of a run, median and minimum."""
    import numpy
    import onnx
    import onnxruntime
    tensor = onnx.TensorProto()
    with open(given, "rb") as file:
        tensor.ParseFromString(file.read())
    values = {"x": onnx.numpy_helper.to_array(tensor)}
    begin = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    result = session.run(None, values)
    first = time.perf_counter() - begin
    numpy.save(output, result[0])
    times, end = [], time.perf_counter() + float(seconds)
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        session.run(None, values)
        times.append(time.perf_counter() - begin)
    print("%.2f %.2f %.2f" % (first * 1e3, statistics.median(times) * 1e6, min(times) * 1e6))


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("infer: %s\n%s" % (" ".join(command), done.stderr))
    return [float(word) for word in done.stdout.split()]


def compare(ours, theirs):
    """The largest difference, as a share of the largest output."""
    import numpy
    a, b = numpy.load(ours), numpy.load(theirs)
    if a.shape != b.shape or not numpy.isfinite(a).all():
        return float("inf")
    return float(numpy.abs(a - b).max() / numpy.abs(b).max())


def main(build):
    try:
        import onnx
        import onnxruntime
        import torch
    except ImportError as error:
        print("infer: %s; pip install onnxruntime onnx torch, then PYTHON=..." % error)
        return 0
    program = os.path.join(build, "bench", "infer")
    if not os.path.exists(program):
        print("infer: %s has no bench/infer; cmake --build %s --target bench-programs makes it" % (build, build), file=sys.stderr)
        return 1
    folder = os.path.join(build, "infer")
    os.makedirs(folder, exist_ok=True)
    threads, batch = os.environ.get("THREADS", "1"), int(os.environ.get("BATCH", "64"))
    rounds, seconds = int(os.environ.get("ROUNDS", "5")), os.environ.get("SECONDS_EACH", "0.5")
    int8 = os.environ.get("INT8", "0") == "1"
    known = make_models(torch)
    names = os.environ.get("MODELS", "").split() or list(known)
    for name in names:
        if name not in known:
            print("infer: no model is called '%s': there are %s" % (name, " ".join(known)), file=sys.stderr)
            return 2
    print("ONNX Runtime %s, %s thread(s), medians of %d rounds, load average %.1f; ms of one record and of %d; ratio: ours / theirs"
          % (onnxruntime.__version__, threads, rounds, os.getloadavg()[0], batch))
    heads = ("model", "one", "theirs", "ratio", str(batch), "theirs", "ratio", "load+first", "theirs", "ratio", "differ")
    print("%-11s %9s %9s %6s %9s %9s %6s %10s %9s %6s %8s" % heads)
    worst = 0
    for name in names:
        write(torch, folder, name, batch)
        model, cells, load = os.path.join(folder, name + ".onnx"), [], None
        their_model = quantize(model) if int8 else model
        error = 0
        for count in (1, batch):
            given = os.path.join(folder, "%s-%d.pb" % (name, count))
            outputs = [os.path.join(folder, "%s.npy" % who) for who in ("ours", "theirs")]
            ours, theirs = [], []
            for _ in range(rounds):
                ours.append(measure([program, model, threads + (",int8" if int8 else ""), seconds, outputs[0], given]))
                theirs.append(measure([sys.executable, __file__, "--run", their_model, threads, seconds, outputs[1], given]))
            error = max(error, compare(*outputs))
            columns = [[statistics.median(row[i] for row in rows) for rows in (ours, theirs)] for i in (0, 1)]
            load = load or columns[0]
            cells += ["%9.3f" % (columns[1][0] / 1e3), "%9.3f" % (columns[1][1] / 1e3), "%6.2f" % (columns[1][0] / columns[1][1])]
        cells += ["%10.1f" % load[0], "%9.1f" % load[1], "%6.2f" % (load[0] / load[1]), "%8.1e" % error]
        print("%-11s %s" % (name, " ".join(cells)), flush=True)
        worst = max(worst, error)
    tolerance = TOLERANCE_INT8 if int8 else TOLERANCE
    if worst > tolerance:
        print("infer: outputs differ by more than %g" % tolerance, file=sys.stderr)
    return int(worst > tolerance)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_theirs(*sys.argv[2:])
    elif sys.argv[1:2] and sys.argv[1].startswith("-"):
        print(__doc__)
    else:
        sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "build/release"))
