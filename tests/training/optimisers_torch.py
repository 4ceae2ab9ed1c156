#!/usr/bin/env python3
"""Parameters after five updates by PyTorch 2.15's optimisers, in float64: prints optimisers_torch.h.

Lion and LAMB, which PyTorch does not have, are written out below after their papers. Muon's Newton-Schulz steps, which
PyTorch does in bfloat16, are done in float64.
"""
import torch

torch.set_default_dtype(torch.float64)
torch.bfloat16 = torch.float64  # for Muon
SHAPES = ((3, 4), (5, 2), (4,), (2, 3, 2))
STEPS = 5


def numbers(shape, which):
    """The same formula as in test_optimisers_torch.c."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((i * 7919 + which * 104729 + 13) % 2003).double() / 1000 - 1).reshape(shape)


class Own(torch.optim.Optimizer):
    def __init__(self, parameters, **options):
        super().__init__(parameters, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                self.update(p, p.grad, state, **{k: group[k] for k in ("lr", "b1", "b2", "decay")})


class Lion(Own):
    """Chen et al., 2023, algorithm 2."""
    def update(self, p, g, state, lr, b1, b2, decay):
        c = b1 * state["m"] + (1 - b1) * g
        p -= lr * (c.sign() + decay * p)
        state["m"] = b2 * state["m"] + (1 - b2) * g


class Lamb(Own):
    """You et al., 2019, algorithm 2."""
    def update(self, p, g, state, lr, b1, b2, decay):
        state["m"] = b1 * state["m"] + (1 - b1) * g
        state["v"] = b2 * state["v"] + (1 - b2) * g * g
        r = (state["m"] / (1 - b1 ** state["t"])) / ((state["v"] / (1 - b2 ** state["t"])).sqrt() + 1e-6)
        u = r + decay * p
        p -= lr * p.norm() / u.norm() * u


class Muon:
    """Matrices by torch.optim.Muon, others by AdamW; what has more dimensions as (first, all others)."""
    def __init__(self, parameters):
        self.flat = [(p, torch.nn.Parameter(p.detach().flatten(1))) for p in parameters if p.dim() > 1]
        self.muon = torch.optim.Muon([q for _, q in self.flat], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
        self.adamw = torch.optim.AdamW([p for p in parameters if p.dim() == 1], lr=0.02, betas=(0.9, 0.95), eps=1e-8,
                                       weight_decay=0.1)

    def step(self):
        for p, q in self.flat:
            q.grad = p.grad.flatten(1)
        self.muon.step()
        self.adamw.step()
        for p, q in self.flat:
            p.data.copy_(q.data.reshape(p.shape))


class Adafactor:
    """torch.optim.Adafactor, of what has more dimensions as (first, all others)."""
    def __init__(self, parameters, **options):
        self.flat = [(p, torch.nn.Parameter(p.detach().flatten(1) if p.dim() > 2 else p.detach().clone()))
                     for p in parameters]
        self.inner = torch.optim.Adafactor([q for _, q in self.flat], **options)

    def step(self):
        for p, q in self.flat:
            q.grad = p.grad.reshape(q.shape)
        self.inner.step()
        for p, q in self.flat:
            p.data.copy_(q.data.reshape(p.shape))


OPTIMISERS = (
    ("sgd", lambda p: torch.optim.SGD(p, lr=0.1)),
    ("sgd_momentum", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, weight_decay=0.05)),
    ("sgd_nesterov", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, nesterov=True)),
    ("adadelta", lambda p: torch.optim.Adadelta(p, lr=1)),
    ("rmsprop", lambda p: torch.optim.RMSprop(p, lr=0.02)),
    ("adam", lambda p: torch.optim.Adam(p, lr=0.02)),
    ("adamw", lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.03)),
    ("adamw_defaults", lambda p: torch.optim.AdamW(p, lr=0.02)),
    ("adam_long", lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.9, 0.999999))),
    ("adamw_long", lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.9, 0.999999))),
    ("lion", lambda p: Lion(p, lr=0.02, b1=0.9, b2=0.99, decay=0.1)),
    ("lamb", lambda p: Lamb(p, lr=0.02, b1=0.9, b2=0.999, decay=0.01)),
    ("lamb_long", lambda p: Lamb(p, lr=0.02, b1=0.99, b2=0.999999, decay=0.01)),
    ("adafactor", lambda p: Adafactor(p, lr=0.5)),
    ("adafactor_decay", lambda p: Adafactor(p, lr=0.02, weight_decay=0.1)),
    ("muon", Muon),
)

print("/* Made by optimisers_torch.py with PyTorch %s: the parameters one after the other. */\n/* clang-format off */"
      % torch.__version__.split("+")[0])
for name, make in OPTIMISERS:
    parameters = [torch.nn.Parameter(numbers(shape, k)) for k, shape in enumerate(SHAPES)]
    optimiser = make(parameters)
    for step in range(1, STEPS + 1):
        for k, p in enumerate(parameters):
            p.grad = numbers(p.shape, 10 * step + k)
        optimiser.step()
    values = torch.cat([p.detach().reshape(-1) for p in parameters])
    print("static const double torch_%s[] = {%s};" % (name, ", ".join("%.17g" % v for v in values.tolist())))
