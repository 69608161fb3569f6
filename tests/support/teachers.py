"""Teachers: small networks, a deep stack over tokens, and sequences to ask them."""

import itertools

import torch
from torch import nn


def network(*sizes, activation=nn.Tanh, seed=0, dtype=torch.float64):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    made = nn.Sequential(*layers[:-1]).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) / 2)
    return made.eval()


LINE = network(1, 1)


class Deep(nn.Module):
    """A stack of encoder layers over tokens."""

    def __init__(self, layers=3, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if "norm" not in name:
                    p.copy_(torch.randn(p.shape, generator=generator) / 4)

    def forward(self, tokens, there):
        return self.layers(self.embedding(tokens), src_key_padding_mask=~there)


def sequences(count=200, length=6, seed=0):
    return torch.randint(0, 11, (count, length), generator=torch.Generator().manual_seed(seed))
