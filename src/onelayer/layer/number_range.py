"""The door of every proof about stored weights: numbers that our own float64 algebra cannot lose.

A proof multiplies stored numbers with one another: a query's with a key's, or those that a value meets on its way to an output.
Underflow there would drop a term that is not small, since a later factor may be huge; overflow would make ∞ of it.

**Lemma.** Let every tensor of the layer be a step, with lowest and highest its smallest and largest non-zero absolute value. If

    Σ_steps min(0, log2 lowest)  ≥ −LOW    and    Σ_steps max(0, log2(highest · terms)) ≤ HIGH

over the steps of a way, `terms` the summands of that step, then the product of stored numbers along any part of the way is at
least 2^−LOW, and every sum of such products at most 2^HIGH. With LOW = 600 a product is a normal float64 number, and so is its
product with LEAST = 2^−400: whoever charges an error charges at least that much, and then no error vanishes on its way. What
remains is to spare for 1/√d_k and shares of a box. With HIGH = 1020 sums do not overflow; what they are multiplied with besides
may take them there, and then a bound is ∞, which is none.

Proof. Leaving a factor out changes the sum of logarithms by at most the part that is counted: the first sum has only negative
terms, the second only positive ones. ∎

The normalised input counts as a step from above. From below it does not: where x̂ is near 0 a product with it may underflow, and
loses less than the smallest number times the rest of its way. Softmax weights are no stored numbers: one that underflows is off
by at most the smallest number, which whoever drops it charges. LayerNorm squares a stream, which counts twice from above.
"""

import math
from collections.abc import Iterator, Sequence

import torch

from ..model.transformer import SingleLayerTransformer

LOW, HIGH = 600.0, 1020.0  # binary places
LEAST = 2.0**-400  # of an error that is charged
LARGEST_SCALE = 300.0  # likewise, of x̂ = (x − shift)·scale: a key times it is normal, too
EMBEDDING = ("W_E", "b_E", "P", "S")
NORMS = ("gain_1", "offset_1", "gain_2", "offset_2")
WAYS = (
    (EMBEDDING, EMBEDDING, ("W_Q", "b_Q"), ("W_K", "b_K"), *((name,) for name in NORMS)),
    (EMBEDDING, ("W_V", "b_V"), ("W_O", "b_O"), ("W_1", "b_1"), ("W_2", "b_2"), ("W_R", "b_R"), *((n,) for n in NORMS)),
)


def out_of_range(model: SingleLayerTransformer, edge: float) -> str | None:
    """Why nothing can be proved about these weights for |x̂| ≤ edge; None if they are as the lemma asks."""
    stored = model.state_dict()
    if not (all(bool(t.isfinite().all()) for t in stored.values()) and math.isfinite(edge)):
        return "some weights, or inputs as the layer normalises them, are not finite numbers"
    scale = [abs(math.log2(abs(s))) for s in stored["scale"].flatten().tolist() if s]
    if any(s > LARGEST_SCALE for s in scale):
        return f"inputs are multiplied by numbers beyond 2^±{LARGEST_SCALE:.0f}: choose another unit for them"
    for names, down, up in extents(model, edge):
        if down < -LOW or up > HIGH:
            size, end = ("small", down) if down < -LOW else ("large", up)
            return f"products of weights can be as {size} as 2^{end:.0f} ({names}): proofs take 2^-{LOW:.0f} to 2^{HIGH:.0f}"
    return None


def extents(model: SingleLayerTransformer, edge: float) -> Iterator[tuple[str, float, float]]:
    """The tensors of every way, and both sums of the lemma."""
    stored, squared = model.state_dict(), 2 if model.config.norm != "none" else 1
    for way in WAYS:
        steps = [[name for name in step if name in stored] for step in way]
        found = list(_logarithms([[stored[name] for name in step] for step in steps]))
        up = sum(max(0.0, high) for _, high in found) + 2 * max(0.0, math.log2(edge or 1.0))
        yield ", ".join(name for step in steps for name in step), sum(min(0.0, low) for low, _ in found), squared * up


def _logarithms(steps: Sequence[Sequence[torch.Tensor]]) -> Iterator[tuple[float, float]]:
    """log2 of the smallest and of the largest non-zero number of every step, the largest times its summands."""
    for tensors in steps:
        sizes = [t.detach().double().abs().flatten() for t in tensors]
        found = torch.cat([s[s > 0] for s in sizes]) if sizes else torch.zeros(0)
        if len(found):
            terms = max(t.shape[-2] if t.ndim > 1 else 1 for t in tensors) + 1
            yield math.log2(float(found.min())), math.log2(float(found.max())) + math.log2(terms)
