"""A certified layer as a frozen block of a larger Transformer: the rest is trained, and the certified function stays.

    python examples/frozen_block.py

What you learn: how to wire a layer into a stock nn.TransformerEncoder so that training cannot touch it. Some lanes of the
residual stream belong to it, and three rules keep them:

    - other layers read them as they like, but the rows of their weights that write there are zero, and stay zero;
    - these layers have norm_first=True: a LayerNorm in the stream itself would rescale all lanes;
    - the block reads and writes nothing else, has no LayerNorm, and gives tokens that are not its own a score so low that their
      weight is exactly 0.

So the block always sees the same numbers in its lanes, and adds the same numbers to them, bit for bit, whatever the rest learns.

The task: tokens x, y and a threshold u. Is sin 9x + sin 9y above u? The block computes the left side, within a proved bound; two
ordinary layers, one before it and one behind it, learn to compare.
"""

import math
import sys

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

import onelayer as ol
from onelayer.common.numbers import at_most

FORMULA, BOX, TOLERANCE = "sin(9*x) + sin(9*y)", (-1, 1), 1e-3
WIDTH, HEAD = 40, 4  # of the stream, and of a head of the block
STEPS, BATCH, POINTS = 250, 128, 2_000


class Kept(nn.Module):
    """A weight or bias whose first rows are 0, whatever an optimiser does to it: nothing is written to these lanes."""

    def __init__(self, lanes: int) -> None:
        super().__init__()
        self.lanes = lanes

    def forward(self, raw: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(raw[: self.lanes]), raw[self.lanes :]])


def keep_off(layer: nn.TransformerEncoderLayer, lanes: int) -> None:
    """Let a stock layer write behind the first `lanes` lanes only. It needs norm_first=True: LayerNorm would rescale them."""
    if not layer.norm_first:
        raise ValueError("a layer with norm_first=True is needed: LayerNorm behind it would rescale the kept lanes")
    for module in (layer.self_attn.out_proj, layer.linear2):
        for name in ("weight", "bias"):
            parametrize.register_parametrization(module, name, Kept(lanes))


def block_of(approx: ol.Approximation, width: int) -> nn.TransformerEncoderLayer:
    """The certified layer as a stock layer of that width: its lanes come first, then ASK (own tokens) and FLAG (others)."""
    model, c = approx.model, approx.model.config
    w = {name: t.detach() for name, t in model.state_dict().items()}
    plain = c.norm == "none" and c.residual and not c.projection_bias and c.activation == "relu"
    one_lane = c.readout == "output" and w["W_R"].count_nonzero() == 1 == w["W_R"].sum()
    if not (plain and one_lane and max(c.d_k + 1, c.d_v) <= HEAD and c.heads * HEAD <= width):
        raise ValueError("a constructed layer with one answer, whose heads fit into the stream, is needed")
    m, ask, flag = c.d_model, c.d_model, c.d_model + 1
    block = nn.TransformerEncoderLayer(
        width,
        width // HEAD,
        c.ffn_width,
        dropout=0.0,
        activation=lambda t: torch.relu(
            t
        ),  # a function of our own keeps torch off its fused path, which wants LayerNorm
        batch_first=True,
        norm_first=True,
        dtype=model.W_E.dtype,
    )
    block.norm1, block.norm2 = nn.Identity(), nn.Identity()
    corners = torch.cartesian_prod(*[torch.tensor(BOX, dtype=w["W_E"].dtype)] * approx.domain.dimension)
    e = model.tokens(corners.reshape(len(corners), c.tokens, c.features_in)).abs().amax(dim=(0, 1))
    largest = ((e @ w["W_Q"].abs()) * (e @ w["W_K"].abs())).sum(dim=-1).max() / math.sqrt(c.d_k)  # of all scores
    hidden = 2.0 ** math.ceil(math.log2(2 * float(largest) + 1000))  # e^−1000 is 0 in float64
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
        query, key, value = block.self_attn.in_proj_weight.reshape(3, -1, HEAD, width)  # views: [head, of it, lane]
        query[: c.heads, : c.d_k, :m] = w["W_Q"].mT * math.sqrt(HEAD / c.d_k)  # stock scores are divided by √HEAD
        key[: c.heads, : c.d_k, :m] = w["W_K"].mT
        query[: c.heads, c.d_k, ask], key[: c.heads, c.d_k, flag] = math.sqrt(HEAD), -hidden
        value[: c.heads, : c.d_v, :m] = w["W_V"].mT
        out = block.self_attn.out_proj.weight.reshape(width, -1, HEAD)
        out[:m, : c.heads, : c.d_v] = w["W_O"].T.reshape(m, c.heads, c.d_v)
        block.self_attn.out_proj.bias[:m] = (
            w["W_R"][:, 0] * w["b_R"]
        )  # the read-out takes one lane: its bias goes there
        block.linear1.weight[:, :m], block.linear1.bias[:] = w["W_1"].T, w["b_1"]
        block.linear2.weight[:m], block.linear2.bias[:m] = w["W_2"].T, w["b_2"]
    return block.requires_grad_(False)


class Comparer(nn.Module):
    """Tokens x, y, the constants of the block, and u; a logit for “f(x, y) is above u”."""

    def __init__(self, approx: ol.Approximation, width: int = WIDTH) -> None:
        super().__init__()
        self.own, c = approx.model.requires_grad_(False), approx.model.config
        self.kept, self.count = c.d_model + 2, c.all_tokens  # lanes and tokens of the block
        self.row = self.count - 1  # where it answers: at its output token
        self.lane = int(self.own.W_R[:, 0].nonzero())
        self.free = nn.Linear(self.count + 2, width - self.kept, dtype=torch.float64)
        stock = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
        )
        self.encoder = nn.TransformerEncoder(stock, num_layers=3, enable_nested_tensor=False)
        for i in (0, 2):
            keep_off(self.encoder.layers[i], self.kept)
        self.encoder.layers[1] = block_of(approx, width)
        self.head = nn.Linear(width, 1, dtype=torch.float64)

    def stream(self, x: Tensor, u: Tensor) -> Tensor:
        """The block's lanes, which no weight of the rest can reach, and free lanes: token numbers and values."""
        batch, kept = len(x), x.new_zeros(len(x), self.count + 1, self.kept)
        kept[:, : self.count, : self.kept - 2] = self.own.tokens(x.unsqueeze(-1))
        kept[:, : self.count, -2], kept[:, self.count, -1] = 1.0, 1.0  # ASK, FLAG
        values = torch.cat([x, x.new_zeros(batch, self.count - x.shape[1]), u], dim=1).unsqueeze(-1)
        which = torch.eye(self.count + 1, dtype=x.dtype).expand(batch, -1, -1)
        return torch.cat([kept, self.free(torch.cat([which, values], dim=-1))], dim=-1)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        return self.head(self.encoder(self.stream(x, u))[:, self.count])

    @torch.no_grad()
    def certified(self, x: Tensor, u: Tensor) -> Tensor:
        """What the last layer's stream holds in the lane and row of the certified function."""
        return self.encoder(self.stream(x, u))[:, self.row, self.lane]


def truth(x: Tensor) -> Tensor:
    return torch.sin(9 * x).sum(dim=1, keepdim=True)


def drawn(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Random points, thresholds, and the right answers."""
    x = 2 * torch.rand(count, 2, generator=generator, dtype=torch.float64) - 1
    u = 3 * torch.rand(count, 1, generator=generator, dtype=torch.float64) - 1.5
    return x, u, (truth(x) > u).double()


def train(model: Comparer) -> None:
    """AdamW over everything that has a gradient, with weight decay: the kept rows stay 0."""
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, weight_decay=0.01)
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x, u, answer = drawn(BATCH, generator)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x, u), answer)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@torch.no_grad()
def accuracy(model: Comparer, x: Tensor, u: Tensor, answer: Tensor) -> float:
    return float(((model(x, u) > 0) == (answer > 0)).double().mean())


def main() -> int:
    approx = ol.build(FORMULA, {"x": BOX, "y": BOX}, TOLERANCE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Comparer(approx)
    x, u, answer = drawn(POINTS, torch.Generator().manual_seed(2))
    before, first = model.certified(x, u), accuracy(model, x, u, answer)
    weights = {name: t.clone() for name, t in model.encoder.layers[1].state_dict().items()}
    train(model)
    after, other = model.certified(x, u), model.certified(x, 1 - u)  # and beside other thresholds
    same = torch.equal(before, after) and torch.equal(after, other)
    same &= all(torch.equal(t, weights[name]) for name, t in model.encoder.layers[1].state_dict().items())
    error = float((after - truth(x)[:, 0]).abs().max())
    own = float((after - torch.from_numpy(approx(x.numpy()))).abs().max())
    last = accuracy(model, x, u, answer)
    handle = model.encoder.layers[1].register_forward_hook(lambda block, given, out: given[0])  # the block left out
    without = accuracy(model, x, u, answer)
    handle.remove()
    c = approx.certificate
    print(f"{FORMULA}: {c.verdict}, proved to be within {at_most(c.bound)}; {model.kept} of {WIDTH} lanes are its own")
    print(
        f"accuracy of the whole model: {first:.1%} before training, {last:.1%} after, {without:.1%} without the block"
    )
    print(f"the certified function in the stream at {POINTS:,} points: {'the same bits' if same else 'OTHER NUMBERS'}")
    print(f"its observed error there: {error:.2e}; observed difference from the layer alone: {own:.1e}")
    return 0 if c.verdict == "CERTIFIED" and same and error <= TOLERANCE and last > 0.9 > without else 1


if __name__ == "__main__":
    sys.exit(main())
