"""Every kind of layer through TransformerLens: how far its answers and its attention weights are from ours.

Answers are compared at 1,000 random inputs (sequences of the largest length), relative to the size of the terms that the layer
adds up for them; attention weights at the rows that are read, of every head. `--page` writes the table into transformer_lens.md.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.model import program
from onelayer.model.on_tensors import OnTensors
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.sequence_layer import SequenceLayer
from page import markdown, options, page_of, placed
from targets import FRANKE

INPUTS = 1000
NAME = "blocks.0.attn.hook_pattern"
SINES = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
SQUARE = [(0, 1)] * 2
TEXT = "the cat sat on the mat. the dog sat on the cat. a cat and a dog ran."
any_length = ol.gallery.any_length
KINDS: dict[str, Callable[[str], Approximation | SequenceLayer]] = {
    "gates": lambda dtype: ol.build(*SINES, 5e-4, dtype=dtype),
    "gates that cancel": lambda dtype: ol.build("sin(x1*x2)", [(0, 2)] * 2, 1e-2, dtype=dtype),
    "representative": lambda dtype: ol.build("x1*x2", SQUARE, 0.3, method="representative", dtype=dtype),
    "memory tokens": lambda dtype: ol.build(FRANKE, SQUARE, 1e-2, dtype=dtype),
    "max": lambda dtype: ol.build("max(x1, x2)", SQUARE, 1e-3, dtype=dtype),
    "hinges": lambda dtype: ol.build("sqrt((a-b)^2 + (c-d)^2)", "1:5", 0.2, dtype=dtype),
    "sort": lambda dtype: ol.gallery.sort(4, 1e-3, dtype=dtype),
    "memorised": lambda dtype: ol.memorize(*np.random.default_rng(0).random((2, 40, 2)), dtype=dtype),
    "histogram": lambda dtype: ol.gallery.histogram(8, 26, dtype=dtype),
    "parity": lambda dtype: ol.gallery.parity(9, dtype=dtype),
    "trained": lambda dtype: ol.train(*SINES, width=16, steps=30, dtype=dtype),
    "trained, pre-norm": lambda dtype: ol.train(*SINES, width=9, steps=30, dtype=dtype, norm="pre", activation="gelu"),
    "trained, post-norm": lambda dtype: ol.train(
        *SINES, width=9, steps=30, dtype=dtype, norm="post", activation="silu"
    ),
    "running_max, any length": lambda dtype: any_length.running_max(30, 1e-3, dtype=dtype),
    "mean, any length": lambda dtype: any_length.mean(30, dtype=dtype),
    "sort, any length": lambda dtype: any_length.sort(4, 1e-2, dtype=dtype),
    "look_up, any length": lambda dtype: any_length.look_up(12, 2, 3, dtype=dtype),
    "depth, any length": lambda dtype: any_length.depth(20, dtype=dtype),
    "majority, any length": lambda dtype: any_length.majority(20, dtype=dtype),
    "induction, any length": lambda dtype: any_length.induction(6, 3, dtype=dtype),
    "sets": lambda dtype: ol.set_function("sqrt(mean(x^2))", (0.1, 1.0), 1e-2, longest=20, dtype=dtype),
    "text, causal": lambda dtype: ol.language(TEXT, order=3, tokens="words", tolerance=1e-3, longest=30, dtype=dtype),
}


def sample(layer: Approximation | SequenceLayer, count: int, dtype: str) -> np.ndarray:
    """Random inputs: [count, D], or sequences of the largest length."""
    rng, d = np.random.default_rng(7), layer.description
    if isinstance(layer, SequenceLayer):
        (low, high), n = layer.description.ends, layer.longest
    else:
        low, high, n = *map(np.array, (layer.domain.lower, layer.domain.upper)), layer.domain.dimension
    x = low + (high - low) * rng.random((count, n))
    return np.asarray((np.rint(x) if d.vocabulary is not None else x).clip(low, high).astype(dtype))


def features(layer: Approximation | SequenceLayer, x: Tensor) -> Tensor:
    """The same inputs as our model takes them."""
    if layer.description.vocabulary is not None:
        return torch.nn.functional.one_hot(x.long(), layer.description.vocabulary).to(layer.model.W_E.dtype)
    return x.reshape(len(x), -1, layer.model.config.features_in)


@torch.no_grad()
def size_of_terms(model: SingleLayerTransformer, x: Tensor) -> float:
    """The largest sum of absolute values of what the layer adds up for an answer: rounding is relative to that.

    Hidden units that are 0 add nothing.
    """
    c, w = model.config, {name: t.detach().abs() for name, t in model.state_dict().items()}
    alpha, e = model.attention(x), model.tokens(x)
    rows = slice(-c.output_tokens, None) if c.readout == "output" else slice(0, x.shape[1])
    e_in, e, alpha = program.seen(OnTensors(model), e), e[:, rows], alpha[:, :, rows]
    a = (alpha @ model._project(e_in, "V").abs()).transpose(1, 2).flatten(2) @ w["W_O"] + w.get("b_O", 0.0)
    a = a + e.abs() if c.residual else a
    h = a if c.norm != "post" else (c.d_model**0.5 * w["gain_1"] + w["offset_1"]).expand_as(a)
    hidden = h @ w["W_1"] + w["b_1"]
    if c.norm == "none" and c.activation == "relu":
        stream = model.attend(e, model.embed(x), model.special, model._hidden(x, None)) + (e if c.residual else 0.0)
        hidden = hidden * (stream @ model.W_1 + model.b_1 > 0)
    f = hidden @ w["W_2"] + w["b_2"]
    return float(((h + f if c.residual else f) @ w["W_R"] + w["b_R"]).max())


def compared(layer: Approximation | SequenceLayer, there: Any, count: int, dtype: str) -> tuple[float, float, float]:
    """(largest difference of answers, the same relative to the terms, largest difference of attention weights)."""
    c, x = layer.model.config, sample(layer, count, dtype)
    given = torch.from_numpy(x)
    own = features(layer, given)
    with torch.no_grad():
        y, (_, cache) = there(given), there.model.run_with_cache(there.inputs(given), names_filter=NAME)
        alpha = layer.model.attention(own)
    ours, s = np.asarray(layer(x), dtype=np.float64), c.special_tokens
    assert y.shape == ours.shape
    assert cache[NAME].shape == alpha.shape
    rows = (
        slice(s - c.output_tokens, s) if c.readout == "output" else slice(s, None)
    )  # constant tokens come first there
    difference = float(np.abs(y.double().numpy() - ours).max())
    attention = (cache[NAME] - alpha.roll((s, s), dims=(2, 3)))[:, :, rows].abs().max()
    return difference, difference / size_of_terms(layer.model, own), float(attention)


def row(kind: str, dtype: str, folder: Path, count: int) -> list[str]:
    """One line of the table."""
    from onelayer.deployment.export.lens_loader import load

    layer, place = KINDS[kind](dtype), folder / f"{kind} {dtype}"
    ol.export(layer, place, to="transformer_lens", points=count)
    found = compared(layer, load(place), count, dtype)
    c = layer.model.config
    shape = f"{c.heads} × {c.all_tokens}" if not c.any_length else f"{c.heads} × up to {c.all_tokens}"
    return [kind, shape, dtype, *(f"{value:.1e}" if value else "0" for value in found)]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the table into transformer_lens.md")
    args = parser.parse_args()
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for dtype in ("float64", "float32"):
                cells.append(row(kind, dtype, Path(folder), INPUTS))
                print(*cells[-1], sep="  ", flush=True)
    columns = ["layer", "heads × tokens", "dtype", "difference of answers", "relative", "of attention weights"]
    if args.page:
        page = page_of("transformer_lens.md")
        page.write_text(placed(page.read_text(), "lens", markdown(columns, cells)))


if __name__ == "__main__":
    main()
