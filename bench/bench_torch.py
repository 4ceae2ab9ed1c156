#!/usr/bin/env python3
"""Time of training steps in PyTorch, for comparison.

    bench_torch.py --sizes 784,1024,1024,10 --batch 100 --optimiser sgd --threads 1 [--way compile+fused] [--seconds 2]
    bench_torch.py --version          version, MB of its own libraries, what it can do (exit code 77 without PyTorch)

The network is one of MODELS; the examples stay in memory. --way joins words with "+":

    plain       the optimiser does one parameter after the other
    foreach     the optimiser does all parameters in one call
    fused       the optimiser's update is one kernel (version 2.4 and later)
    compile     torch.compile (version 2 and later)
    autotune    the same with max-autotune
    last        images with their channels last
    attention   scaled_dot_product_attention in place of its parts (version 2 and later)

Prints the median of a step in microseconds, its 10th and 90th percentile, and the process's largest memory in MB, as
bench/step.c does. With --serve it imports PyTorch, waits for a line, takes the first steps (which compile) and says "ready
SECONDS"; then it measures and answers for each line that gives it seconds: so that one process can be measured in turns
with others.
"""
import argparse
import functools
import os
import sys
import time

WARM_UP_STEPS = 5
MINIMUM_STEPS = 5
MAXIMUM_STEPS = 200000


def cross_entropy(torch):
    return torch.nn.CrossEntropyLoss()


def cross_entropy_of_steps(torch):
    """Of (batch, time, classes)."""
    return lambda logits, classes: torch.nn.functional.cross_entropy(logits.flatten(0, 1), classes.flatten())


def dense(torch, arguments):
    """Dense layers of these sizes with relu between them."""
    sizes = [int(size) for size in arguments.sizes.split(",")]
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        if layers:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(fan_in, fan_out))
    examples = torch.rand(arguments.batch, sizes[0])
    classes = torch.randint(sizes[-1], (arguments.batch,))
    return torch.nn.Sequential(*layers), examples, classes, cross_entropy(torch)


def lenet(torch, arguments):
    """Two convolutions of 5 x 5 without a border, each with relu and pooling, and two dense layers."""
    nn = torch.nn
    network = nn.Sequential(
        *(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    images, classes = torch.rand(arguments.batch, 1, 28, 28), torch.randint(10, (arguments.batch,))
    if "last" in arguments.words:
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    return network, images, classes, cross_entropy(torch)


def of_colour_images(torch, arguments, network):
    """A network of images of 3 x 32 x 32 in ten classes."""
    images, classes = torch.rand(arguments.batch, 3, 32, 32), torch.randint(10, (arguments.batch,))
    if "last" in arguments.words:
        network = network.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    return network, images, classes, cross_entropy(torch)


def normalised(torch, fan_in, fan_out, size, stride=1, groups=1, relu=True):
    """A convolution without biases, batch norm, and relu."""
    nn = torch.nn
    convolution = nn.Conv2d(fan_in, fan_out, size, stride, size // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(fan_out)] + ([nn.ReLU(inplace=True)] if relu else [])


def resnet(torch, arguments):
    """ResNet-18 as it is built for small images: the first convolution is 3 x 3, without pooling."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, fan_in, fan_out, stride):
            super().__init__()
            self.long = nn.Sequential(
                *normalised(torch, fan_in, fan_out, 3, stride), *normalised(torch, fan_out, fan_out, 3, relu=False)
            )
            same = stride == 1 and fan_in == fan_out
            self.short = nn.Sequential(*([] if same else normalised(torch, fan_in, fan_out, 1, stride, relu=False)))

        def forward(self, x):
            return torch.relu(self.long(x) + self.short(x))

    layers = normalised(torch, 3, 64, 3)
    for fan_in, fan_out in ((64, 64), (64, 128), (128, 256), (256, 512)):
        layers += [Block(fan_in, fan_out, fan_out // fan_in), Block(fan_out, fan_out, 1)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return of_colour_images(torch, arguments, nn.Sequential(*layers))


def depthwise(torch, arguments):
    """Pairs of a convolution for each channel and one of all channels of a pixel."""
    nn = torch.nn
    layers = normalised(torch, 3, 32, 3)
    for fan_in, fan_out, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)):
        layers += normalised(torch, fan_in, fan_in, 3, stride, groups=fan_in) + normalised(torch, fan_in, fan_out, 1)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
    return of_colour_images(torch, arguments, nn.Sequential(*layers))


def audio(torch, arguments):
    """Three convolutions over 8,000 samples."""
    nn = torch.nn
    layers = []
    for fan_in, fan_out in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv1d(fan_in, fan_out, 9, 4, 4), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 12))
    sounds, classes = torch.rand(arguments.batch, 1, 8000), torch.randint(12, (arguments.batch,))
    return network, sounds, classes, cross_entropy(torch)


def recurrent(torch, arguments, kind, vocabulary=65, time_steps=64):
    """A character model: embedding of 128, two layers of 256 (torch.nn's LSTM or GRU), a dense layer at each step."""
    nn = torch.nn

    class Characters(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, 128)
            self.layers = getattr(nn, kind)(128, 256, num_layers=2, batch_first=True)
            self.head = nn.Linear(256, vocabulary)

        def forward(self, tokens):
            return self.head(self.layers(self.embedding(tokens))[0])

    tokens, following = (torch.randint(vocabulary, (arguments.batch, time_steps)) for _ in range(2))
    return Characters(), tokens, following, cross_entropy_of_steps(torch)


def gpt(torch, arguments, vocabulary=65, context=64, width=128, heads=4, blocks=4):
    """A transformer: normalised before each part, gelu, biases, its logits by the embedding's weights."""
    nn, functional = torch.nn, torch.nn.functional
    whole = "attention" in arguments.words

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before_attention, self.before_dense = nn.LayerNorm(width), nn.LayerNorm(width)
            self.queries_keys_values, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("hidden", torch.ones(context, context, dtype=torch.bool).triu(1))

        def attend(self, x):
            parts = self.queries_keys_values(x).chunk(3, dim=2)
            queries, keys, values = (part.unflatten(2, (heads, width // heads)).transpose(1, 2) for part in parts)
            if whole:
                attended = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            else:
                scores = queries @ keys.transpose(2, 3) * (width // heads) ** -0.5
                attended = scores.masked_fill(self.hidden, float("-inf")).softmax(3) @ values
            return self.joined(attended.transpose(1, 2).flatten(2))

        def forward(self, x):
            x = x + self.attend(self.before_attention(x))
            return x + self.narrow(functional.gelu(self.wide(self.before_dense(x))))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
            self.normalise, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight
            for weights in self.parameters():
                if weights.dim() > 1:
                    nn.init.normal_(weights, std=0.02)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places.weight
            return self.head(self.normalise(self.blocks(x)))

    tokens, following = (torch.randint(vocabulary, (arguments.batch, context)) for _ in range(2))
    return Transformer(), tokens, following, cross_entropy_of_steps(torch)


MODELS = {
    "dense": dense,
    "lenet": lenet,
    "resnet": resnet,
    "depthwise": depthwise,
    "audio": audio,
    "lstm": functools.partial(recurrent, kind="LSTM"),
    "gru": functools.partial(recurrent, kind="GRU"),
    "gpt": gpt,
    "long": functools.partial(gpt, vocabulary=256, context=512, width=256),
    "gpt2": functools.partial(gpt, vocabulary=50257, width=768, heads=12, blocks=12),
}


def make_optimiser(torch, arguments, parameters):
    kinds = {"sgd": (torch.optim.SGD, 0.01), "adam": (torch.optim.Adam, 0.001), "adamw": (torch.optim.AdamW, 0.001)}
    kind, rate = kinds[arguments.optimiser]
    chosen = {word: True for word in ("foreach", "fused") if word in arguments.words}
    return kind(parameters, lr=rate, **(chosen or {"foreach": False}))


def make_step(torch, arguments):
    """One step of training as a function without arguments."""
    torch.manual_seed(7)
    torch.set_flush_denormal(True)
    network, examples, classes, cost_of = MODELS[arguments.model](torch, arguments)
    optimiser = make_optimiser(torch, arguments, network.parameters())
    model = network
    if "compile" in arguments.words or "autotune" in arguments.words:
        model = torch.compile(network, mode="max-autotune" if "autotune" in arguments.words else None)
    mixed = arguments.precision == "bfloat16"

    def step():
        # Gradients are let go of rather than zeroed: the faster way, and the default since PyTorch 2.
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            cost = cost_of(model(examples), classes)
        cost.backward()
        optimiser.step()

    return step


def measure(step, seconds):
    """The line that is printed."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < MINIMUM_STEPS or (len(times) < MAXIMUM_STEPS and time.perf_counter() < end):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    part = lambda share: 1e6 * times[int(share * len(times))]
    return "%.3f %.3f %.3f %.1f" % (part(0.5), part(0.1), part(0.9), peak_megabytes())


def peak_megabytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def library_megabytes():
    """Of the files that PyTorch itself brings for CPUs, without those that it needs (a BLAS, oneDNN, OpenMP)."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
    own = [file for file in files if os.path.basename(file).startswith(("libtorch", "libc10")) and "cuda" not in file]
    return sum(os.path.getsize(file) for file in own) / 1e6


def abilities(torch):
    """Words of --way that this version knows, and "mkl" where it needs no BLAS from outside."""
    words = ["plain", "foreach", "last"]
    weights = torch.nn.Parameter(torch.ones(1))
    weights.grad = torch.ones(1)
    try:
        for kind in (torch.optim.SGD, torch.optim.Adam):
            kind([weights], lr=0.1, fused=True).step()
        words.append("fused")
    except (TypeError, RuntimeError, ValueError):
        pass
    if hasattr(torch, "compile"):
        words += ["compile", "autotune"]
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        words.append("attention")
    if torch.backends.mkl.is_available():
        words.append("mkl")
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="dense")
    parser.add_argument("--sizes", help="of the input and of the layers, for dense")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--optimiser", choices=["sgd", "adam", "adamw"], default="sgd")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help="bfloat16: autocast")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--way", default="plain", help="words from the list above")
    parser.add_argument("--serve", action="store_true", help="measure when asked on standard input")
    parser.add_argument("--version", action="store_true")
    arguments = parser.parse_args()
    arguments.words = arguments.way.split("+")
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when the library is loaded
    try:
        import torch
    except ImportError:
        sys.exit(77)
    if arguments.version:
        print(torch.__version__, "%.1f" % library_megabytes(), *abilities(torch))
        return
    torch.set_num_threads(arguments.threads)
    if arguments.serve:
        sys.stdin.readline()
    begin = time.perf_counter()
    step = make_step(torch, arguments)
    for _ in range(WARM_UP_STEPS):
        step()
    if not arguments.serve:
        print(measure(step, arguments.seconds))
        return
    print("ready %.2f" % (time.perf_counter() - begin), flush=True)
    for line in iter(sys.stdin.readline, ""):
        print(measure(step, float(line)), flush=True)


if __name__ == "__main__":
    main()
