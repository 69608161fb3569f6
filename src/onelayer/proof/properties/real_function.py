"""What a property is said of: the real function of a layer's stored weights, or a formula.

Both are seen in the same three ways: at points, in floats and in balls; as a form less a formula, whose derivatives up to the
second are such differences again, for proofs by interpolation; and on Taylor models, for proofs by bisection.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from flint import arb

from ...common.numbers import exact
from ...common.outward import UP
from ...formula import Formula, enclose
from ...formula.gradients import slopes
from ...formula.simpler_kinks import one_sided
from ...formula.taylor.series import Space
from ...formula.tree import Negation, Node, Number, Sum
from ...layer.arithmetic import arithmetic_of
from ...layer.assemble import Frame, frame_of
from ...layer.curvature_form import MOST_TOKENS, curvature_form
from ...layer.form import Form
from ...layer.one_direction import one_direction
from ...layer.reading import form_of_model
from ...model.transformer import SingleLayerTransformer
from ...target.domain import Domain
from ...target.target import Target
from ..analytic.prove import box_of
from ..bisection.prove import BranchAndBound
from ..bisection.tangents import has_slopes
from ..bisection.transformer import Value
from ..decision import edge_of
from ..overflow import refusal
from ..slopes import slope_search, slopes_of_reading
from ..witness import in_balls

AT_ONCE = 2**21  # attention weights held at a time
MOST_PAIRS = 40_000  # pairs of tokens of all heads together
SAME_DIRECTION = 1e-3  # share of the size that may be lost where everything changes along one direction
NO_SUM = "the layer is no sum of smooth softmax heads (hinges, LayerNorm, trained or composed layers)"


@dataclass(frozen=True)
class Derivative:
    """A derivative as form − formula, and how far it can be from that, [out]."""

    form: Form
    frame: Frame
    target: Target
    error: np.ndarray


@dataclass(frozen=True)
class RealFunction:
    """A function on a domain, in all the ways in which properties look at it."""

    domain: Domain
    outputs: int
    values: Callable[[np.ndarray], np.ndarray]  # [point, coordinate] → [point, out]
    in_balls: Callable[[Sequence[float]], list[arb]]
    derivative: Callable[[int, int], Derivative | str]  # (order, coordinate) → the derivative, or why there is none
    search: Callable[[int, int, int, float], BranchAndBound | str]
    """(order, coordinate, output, c) → bisection for |derivative of that output − c|, or why there is none."""


def layer_function(model: SingleLayerTransformer, places: tuple[int, ...], domain: Domain) -> RealFunction:
    """The real function of a model's stored weights, at the rows `places`."""
    c, zero = model.config, target_on(domain, (Number(Fraction(0)),))
    m, arithmetic = len(places) * c.features_out, arithmetic_of(model.W_E.dtype)
    double = deepcopy(model).double().eval()
    rows = max(1, AT_ONCE // (max(c.heads * c.all_tokens, c.ffn_width) * (c.read_rows.stop - c.read_rows.start)))

    def values(x: np.ndarray) -> np.ndarray:
        given = torch.from_numpy(x).reshape(len(x), c.tokens, c.features_in)
        with torch.no_grad():
            parts = [double(part)[:, list(places)].flatten(1) for part in given.split(rows)]
        return torch.cat(parts).numpy()

    def balls(x: Sequence[float]) -> list[arb]:
        found = in_balls(model, x)
        return [found[r][o] for r in places for o in range(c.features_out)]

    def derivative(order: int, i: int) -> Derivative | str:
        found = in_all_directions(order, i)
        return found if isinstance(found, str) or not order else _in_one_direction(found)

    def in_all_directions(order: int, i: int) -> Derivative | str:
        reading = form_of_model(model, places, edge_of(model, zero))
        if reading is None or len(reading.hinges):
            return NO_SUM
        nothing = target_on(domain, (Number(Fraction(0)),) * m)
        if order == 0:
            return Derivative(reading.form, reading.frame, nothing, reading.error.numpy())
        scale = reading.frame.scale
        if order == 1:
            if sum(len(b.biases) * b.biases.shape[1] ** 2 // 2 for b in reading.form.blocks) > MOST_PAIRS:
                return f"its heads have more than {MOST_PAIRS:,} pairs of tokens"
            form, error = slopes_of_reading(reading)
            pick = [o * len(scale) + i for o in range(m)]
            return Derivative(form.only(pick), reading.frame, nothing, error[pick])
        found = curvature_form(reading.form, scale, reading.edge, i)
        if found is None:
            return f"its heads have more than {MOST_TOKENS:,} triples of tokens"
        lost = (found[1] + reading.curvature_error * scale[i] * scale[i]) * (1 + 1e-12)
        return Derivative(found[0], reading.frame, nothing, lost.numpy())

    def search(order: int, i: int, output: int, middle: float) -> BranchAndBound | str:
        if (reason := refusal(model, edge_of(model, zero))) is not None:
            return reason
        row, column = places[output // c.features_out], output % c.features_out
        constant = target_on(domain, (_number(middle),))
        if order == 0:
            found = BranchAndBound.of(model, constant, (row,), arithmetic)
            found.columns = [found.columns[column]]
            return found
        if not has_slopes(c):
            return f"slopes are not derived for {c.attention} attention"
        at = (row * c.features_out + column) * domain.dimension + i
        return slope_search(model, constant, [at]) if order == 1 else NO_SUM

    return RealFunction(domain, m, values, balls, derivative, search)


def _in_one_direction(part: Derivative) -> Derivative:
    """The derivative as a form in one variable, if it changes along one direction only; else as it is."""
    domain = part.target.domain
    if domain.dimension == 1 or domain.within is not None or not part.form.is_finite():
        return part
    found = one_direction(part.form, *box_of(part.target, part.frame))
    if found is None or not float(found.error.max()) <= SAME_DIRECTION * float(_size(found.form).max()):
        return part
    ends = (exact(found.low), exact(found.high))
    line = Domain(("z",), (found.low,), (found.high,), (ends,))
    error = (part.error + found.error.numpy()) * UP
    return Derivative(found.form, Frame((0.0,), (1.0,)), target_on(line, (Number(Fraction(0)),) * len(error)), error)


def formula_function(target: Target) -> RealFunction:
    """The formula of a target."""
    formula, domain, m = target.formula, target.domain, target.outputs
    assert formula is not None
    own = one_sided(formula, domain.lower, domain.upper)

    def balls(x: Sequence[float]) -> list[arb]:
        return [v.ball() if v.is_finite() else arb("nan") for v in enclose(own, list(x), strict=True)]

    def derivative(order: int, i: int) -> Derivative | str:
        zero = Form(torch.zeros(m, dtype=torch.float64), torch.zeros(domain.dimension, m, dtype=torch.float64), ())
        negative = target_on(domain, tuple(Negation(tree) for tree in _derived(own, order, i)))
        return Derivative(zero, frame_of(domain), negative, np.zeros(m))

    def search(order: int, i: int, output: int, middle: float) -> BranchAndBound | str:
        apart = target_on(domain, (Sum((_number(middle), Negation(_derived(own, order, i)[output]))),))
        return BranchAndBound(_nothing, apart, [0], 1)

    return RealFunction(domain, m, target.values, balls, derivative, search)


def _derived(formula: Formula, order: int, i: int) -> tuple[Node, ...]:
    """The derivatives of this order along coordinate i, output by output."""
    trees = formula.outputs
    for _ in range(order):
        trees = tuple(row[i] for row in slopes(Formula(formula.text, formula.names, trees)))
    return trees


def _size(form: Form) -> torch.Tensor:
    """About how large the values of the heads are, [out]."""
    sizes = [block.values.abs().amax(dim=1).sum(dim=0) for block in form.blocks]
    return torch.stack([form.bias.abs(), *sizes]).sum(dim=0)


def _nothing(space: Space) -> Value:
    return Value(space.constant(np.zeros((space.boxes, 1))), np.zeros((space.boxes, 1)))


def _number(value: float) -> Node:
    return Number(Fraction(value)) if value >= 0 else Negation(Number(Fraction(-value)))


def target_on(domain: Domain, outputs: tuple[Node, ...]) -> Target:
    """The target with these outputs."""
    found = Target("0", domain).part(Formula("a derivative", domain.names, outputs))
    found.output_shape = (len(outputs),)
    return found
