"""How many symmetric heads the maximum of n numbers needs: `python benchmarks/measure/latent_width.py` writes docs/build/sets.md.

Two figures for each n and each number H of heads. The floor holds for every ρ: two sets with the same power sums p_1, …, p_H
get the same answer, so that some answer is off by half of the difference of their maxima. Pairs with a large difference are
searched for. The other figure is the largest error that training reaches with H exponential heads, sharpnesses and all.
"""

import math

import numpy as np
import torch
from scipy.optimize import minimize

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from page import markdown, options, page_of, placed

PAGE = page_of("sets.md")
SIZES = (2, 3, 4, 6)
STARTS, SAME = 30, 1e-9  # searches per floor; power sums that agree this well count as equal
WIDTH, STEPS, BATCH, SEEDS = 128, 4000, 1024, 2
EXAMPLES = (
    ("sqrt(mean(x^2))", 1e-3),
    ("mean(x^2) - mean(x)^2", 1e-3),
    ("log(mean(exp(3*x)))", 1e-3),
    ("log(1 + sum(x))", 1e-3),
    ("exp(-sum(x^2))", 1e-3),
    ("max(x) - min(x)", 1e-6),
    ("mean(x^2)*mean(x)", 1e-3),
    ("x - mean(x)", 1e-9),
    ("x*exp(-mean(x))", 1e-3),
    ("abs(x - mean(x))", 1e-9),
)


def floor(n: int, H: int) -> float:
    """Half of the largest difference of the maxima of two sets of n with equal p_1, …, p_H that was found."""
    if n <= H:  # Newton's identities: the power sums determine the set
        return 0.0
    rng, best = np.random.default_rng(n * 10 + H), 0.0
    powers = np.arange(1, H + 1)[:, None]

    def apart(v: np.ndarray) -> np.ndarray:
        return np.asarray((v[:n] ** powers - v[n : 2 * n] ** powers).sum(axis=1))

    rules = [{"type": "eq", "fun": apart}, {"type": "ineq", "fun": lambda v: v[-1] - v[n : 2 * n]}]
    for _ in range(STARTS):
        start = rng.random(2 * n + 1)
        found = minimize(
            lambda v: v[-1] - v[0],
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(start),
            constraints=rules,
            options={"maxiter": 500, "ftol": 1e-14},
        )
        x, y = found.x[:n], found.x[n : 2 * n]
        if np.abs(apart(found.x)).max() <= SAME and abs(x.max() - y.max()) > 1e-6:
            best = max(best, abs(x.max() - y.max()) / 2)
    return best


def sets(count: int, n: int, generator: torch.Generator) -> torch.Tensor:
    """Random sets, some with several equal numbers."""
    x = torch.rand(count, n, generator=generator)
    copied = torch.randint(0, n, (count, n), generator=generator)
    alike = torch.rand(count, 1, generator=generator) < 0.5
    return torch.where(alike, x.gather(1, copied), x)


def trained(n: int, H: int, seed: int) -> float:
    """The largest error of ρ(Σ e^(β_1 x), …, Σ e^(β_H x)), β and a ReLU network ρ trained to give the maximum."""
    generator = torch.Generator().manual_seed(1000 * n + 10 * H + seed)
    beta = torch.linspace(-2, 4, H + 1)[1:].clone().requires_grad_()
    first, second = (torch.randn(a, b, generator=generator) for a, b in ((H, WIDTH), (WIDTH, 1)))
    weights = [first / math.sqrt(H), torch.rand(WIDTH, generator=generator) * 2 - 1, second / WIDTH, torch.zeros(1)]
    tuned = [beta, *(w.requires_grad_() for w in weights)]
    optimiser = torch.optim.Adam(tuned, lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)

    def answer(x: torch.Tensor) -> torch.Tensor:
        scaled = torch.exp(beta * (x[..., None] - 0.5)).mean(dim=1).log()  # of one size: sums and means are the same
        hidden = torch.relu(4 * scaled @ tuned[1] + tuned[2])
        return (hidden @ tuned[3] + tuned[4])[:, 0]

    for _ in range(STEPS):
        x = sets(BATCH, n, generator)
        loss = (answer(x) - x.amax(dim=1)).pow(4).mean().sqrt()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        x = sets(100_000, n, generator)
        return float((answer(x) - x.amax(dim=1)).abs().max())


def study() -> str:
    """One row for every n and H."""
    rows = []
    for n in SIZES:
        for H in range(1, n + 2):
            least, reached = floor(n, H), min(trained(n, H, seed) for seed in range(SEEDS))
            known = (1 - math.cos(math.pi / n)) / 4 if n - 1 == H else None
            rows.append((f"{n}", f"{H}", at_least(least, 3), "" if known is None else f"{known:.3g}", f"{reached:.2g}"))
            print(*rows[-1], flush=True)
    return markdown(["n", "heads H", "floor found, any ρ", "(1 − cos(π/n))/4", "trained, largest error"], rows)


def examples() -> str:
    """One row for every formula: its layer for sets of up to 1,000 numbers."""
    rows = []
    for text, tolerance in EXAMPLES:
        layer = ol.set_function(text, tolerance=tolerance)
        heads = ", ".join(f"{count} {kind}" for kind, count in layer.facts.heads)
        bound, seen = at_most(layer.certificate.bound, 2), at_least(layer.certificate.observed, 2)
        rows.append((f"`{text}`", heads, f"{layer.facts.units}", f"{layer.parameters:,}", bound, seen))
    return markdown(["formula", "heads", "ReLUs", "parameters", "bound (proved)", "observed error"], rows)


def main() -> None:
    options(__doc__).parse_args()
    torch.set_num_threads(1)
    page = placed(PAGE.read_text(), "examples", examples())
    PAGE.write_text(placed(page, "width", study()))


if __name__ == "__main__":
    main()
