#!/usr/bin/env python3
"""The character LSTM and the small GPT of bench/workloads.sh on a text, in PyTorch: for comparison of what is learnt.

    text_torch.py --text FILE --network lstm|gpt --steps 2000 --every 250 --threads 2 --start START

Draws the initial weights and where the pieces of each minibatch begin, writes both to START (safetensors, weights with
Sigma's names and layout), so that bench/text.c can train with the same, and trains. Prints, every so many steps,
"step N training LOSS validation LOSS seconds S"; losses are nats per character, training's the mean since the line
before. The last tenth of the text is for validation: whole pieces, one after the other.
"""
import argparse
import json
import os
import struct
import time

TIME = 64


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        shape, size = list(tensor.shape), tensor.numel() * 4
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().contiguous().numpy().tobytes())


def make_lstm(torch, letters):
    """Network, its weights by our names, and how they are trained."""
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(letters, 128)
            self.layers = nn.LSTM(128, 256, 2, batch_first=True)
            self.head = nn.Linear(256, letters)
            for layer in range(2):  # of two biases that are added one is enough
                bias = getattr(self.layers, "bias_hh_l%d" % layer)
                nn.init.zeros_(bias)
                bias.requires_grad_(False)

        def forward(self, x):
            return self.head(self.layers(self.embedding(x))[0])

    network = Network()
    names = {"1-embedding.weights": network.embedding.weight}
    for layer in range(2):
        for ours, theirs in (("weights", "weight_ih"), ("recurrent", "weight_hh"), ("biases", "bias_ih")):
            names["%d-lstm.%s" % (2 + layer, ours)] = getattr(network.layers, "%s_l%d" % (theirs, layer)).t()
    names["4-dense.weights"] = network.head.weight.t()
    names["4-dense.biases"] = network.head.bias
    parameters = [p for p in network.parameters() if p.requires_grad]
    return network, names, torch.optim.Adam(parameters, lr=0.002), 32


def make_gpt(torch, letters):
    nn, width, heads, blocks = torch.nn, 128, 4, 4

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention_norm, self.hidden_norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention, self.attention_output = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.hidden, self.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = self.attention(self.attention_norm(x)).split(width, 2)
            q, k, v = (t.view(len(x), TIME, heads, width // heads).transpose(1, 2) for t in parts)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.attention_output(seen.transpose(1, 2).reshape(x.shape))
            return x + self.output(nn.functional.gelu(self.hidden(self.hidden_norm(x))))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(letters, width), nn.Embedding(TIME, width)
            self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(blocks)]), nn.LayerNorm(width)
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, x):
            return self.norm(self.blocks(self.tokens(x) + self.positions.weight)) @ self.tokens.weight.t()

    network = Network()
    names = {"tokens.weights": network.tokens.weight, "2-positions.weights": network.positions.weight}
    for i, block in enumerate(network.blocks):
        prefix = "%d-transformer." % (3 + i)
        for name, part in block.named_children():
            norm = isinstance(part, nn.LayerNorm)
            names[prefix + name + ("_gains" if norm else "_weights")] = part.weight if norm else part.weight.t()
            names[prefix + name + "_biases"] = part.bias
    names["%d-layer_norm.gains" % (3 + blocks)] = network.norm.weight
    names["%d-layer_norm.biases" % (3 + blocks)] = network.norm.bias
    return network, names, torch.optim.AdamW(network.parameters(), lr=0.001, weight_decay=0.01), 12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", required=True)
    parser.add_argument("--network", choices=("lstm", "gpt"), required=True)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", required=True)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read when the library is loaded
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    with open(arguments.text, "rb") as file:
        data = file.read()
    letters = sorted(set(data))
    text = torch.tensor([letters.index(byte) for byte in data])
    training, validation = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    make = make_lstm if arguments.network == "lstm" else make_gpt
    network, names, optimiser, batch = make(torch, len(letters))
    positions = torch.randint(len(training) - TIME, (arguments.steps, batch))
    write_safetensors(arguments.start, {**names, "positions": positions.float()})

    def loss_of(source, begins):
        pieces = source[begins[:, None] + torch.arange(TIME + 1)]
        return torch.nn.functional.cross_entropy(network(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())

    begins = torch.arange(0, len(validation) - TIME, TIME)
    begins = begins[: len(begins) // batch * batch]
    start, total = time.time(), 0.0
    for step in range(arguments.steps):
        optimiser.zero_grad()
        loss = loss_of(training, positions[step])
        loss.backward()
        optimiser.step()
        total += loss.item()
        if (step + 1) % arguments.every == 0:
            with torch.no_grad():
                losses = [loss_of(validation, part).item() for part in begins.split(batch)]
            print("step %d training %.4f validation %.4f seconds %.1f" % (step + 1, total / arguments.every,
                  sum(losses) / len(losses), time.time() - start), flush=True)
            total = 0.0


main()
