"""method="representative": the paper's construction, planned from the tolerance alone.

The repaired theorem. With n_j cells along coordinate j and sharpness β, T(x) = E[f_pc(x − Z/β)], where Z has logistic
marginals, E|Z_j| = 2 ln 2 and P(|Z_j| > t) = 2/(1 + e^t). With Lipschitz constants L_j per side,

    sup |T − f| ≤ Σ_j L_j (1/(2 n_j) + 2 ln 2/β);

with a modulus ω in the normalised maximum norm and n cells along every side,

    sup |T − f| ≤ E ω(1/(2n) + ‖Z‖/β) ≤ E ω(1/(2n) + R/β),   P(R > t) = min(1, 2D/(1 + e^t)).

A share η of the tolerance goes to the sharpness, the rest to the cells: η = 1/(D+1) makes heads × sharpness smallest.

The partition of the domain: cells, their representatives, and the mixed differences that turn cells into gates.

The unit box is cut into n_1 × … × n_D equal cells. Cell k has lower corner b_k and centre r_k, its representative, with
value y_k = f(r_k). The step function with value y_k on cell k is

    f_pc(x) = Σ_k Δ_k 1[x ≥ b_k],    Δ_k the mixed differences of y (the difference along every axis in turn),

where the first corner of each axis is −∞: such a coordinate is masked. Replacing every indicator by a gate of sharpness β
gives T(x) = Σ_k Δ_k F(β(x − b_k)), one head per cell.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from ...common.errors import InputError
from ...common.numbers import at_least, at_most, exact
from ...common.outward import UP_FEW, U
from ...common.progress import Progress
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Layout, outputs_of
from ...layer.assemble.gates import gate_config
from ...layer.heads import Gates
from ...layer.layer import GateLayer, gate_layer
from ...layer.rounding import running
from ...target.declared import condition_of
from ...target.samples import require_function
from ...target.target import Target
from ..plan import Plan


@dataclass(frozen=True)
class Lattice:
    """n_j equal cells along each axis of [−½, ½]^D, in C order (the last axis runs fastest)."""

    counts: tuple[int, ...]

    @property
    def cells(self) -> int:
        return math.prod(self.counts)

    @property
    def dimension(self) -> int:
        return len(self.counts)

    def representatives(self, start: int = 0, stop: int | None = None) -> Float[np.ndarray, "cell coordinate"]:
        """Centres of cells start … stop − 1, in the unit cube [0, 1]^D."""
        index = np.unravel_index(np.arange(start, self.cells if stop is None else stop), self.counts)
        return np.stack([(i + 0.5) / n for i, n in zip(index, self.counts, strict=True)], axis=1)

    def differences(self, values: Float[np.ndarray, "cell out"]) -> Float[np.ndarray, "cell out"]:
        """Mixed differences Δ_k: along each axis, every value minus its predecessor (the first is kept)."""
        grid = values.reshape(*self.counts, -1)
        for axis in range(self.dimension):
            grid = np.diff(grid, axis=axis, prepend=0.0)
        return grid.reshape(self.cells, -1)

    def gates(self, sharpness: float) -> Gates:
        """One gate per cell, at its lower corner; the coordinates of a first corner are masked."""
        axes = [torch.arange(n, dtype=torch.float64) / n - 0.5 for n in self.counts]
        offsets = torch.cartesian_prod(*axes).reshape(-1, self.dimension)
        kept = offsets > -0.5
        return Gates(torch.full((self.cells,), float(sharpness), dtype=torch.float64), offsets.where(kept, 0.0), kept)


LN4 = 2 * math.log(2)
MOST_HEADS = 10**7
ROUNDING_RESERVE = 1e-6  # share of the tolerance reserved for rounding
EVALUATED_AT_ONCE = 4096


def reach_of(target: Target) -> float:
    """How many sides away from 0 the box reaches: what normalising costs in rounding."""
    ends = zip(target.domain.lower, target.domain.upper, target.domain.sides, strict=True)
    return max(max(abs(a), abs(b)) / float(s) for a, b, s in ends)


def plan_representative(target: Target, tolerance: float, share: float | None = None, layout: Layout = "token") -> Plan:
    """Cells, sharpness and size from the tolerance alone, with the a-priori bound, proved in exact arithmetic."""
    require_function(target.data, "method='representative'")
    D = target.dimension
    eta = 1 / (D + 1) if share is None else share
    if not 0 < eta < 1:
        asked = "a share of the tolerance for the sharpness, in (0, 1)"
        raise InputError(asked, f"{eta}", "choose one, or leave it out")
    geometry = 8 * U * (1 + reach_of(target))  # cells and representatives as floats place them
    reserve = ROUNDING_RESERVE * tolerance  # for rounding
    for _ in range(8):
        counts, sharpness, bound, step = _sizes(target, tolerance - reserve, eta, geometry)
        units = math.prod(counts)
        if units > MOST_HEADS:
            raise InputError(*_too_large(target, tolerance, units, None))
        rounding = sum(theorem_rounding(target, counts, sharpness, step).values())
        if bound + rounding <= tolerance:
            break
        reserve = 1.1 * rounding + ROUNDING_RESERVE * tolerance
        if not reserve < tolerance / 2:
            raise InputError(
                f"tolerance {exact(tolerance)}",
                f"rounding alone may cost {at_most(rounding, 2)} (the box reaches {reach_of(target):.2g} sides away from 0)",
                "use a larger tolerance, or shift the variables toward 0",
            )
    config = gate_config(D, outputs_of(target), layout, units=units, plain=True, anchored=True)
    modulus, proved = str(target.modulus), target.modulus.kind != "estimated"
    condition = condition_of(target)
    plan = Plan("representative", tolerance, units, sharpness, config, bound, proved, counts, modulus, condition)
    if 5 * plan.bytes > memory_bytes():
        raise InputError(*_too_large(target, tolerance, units, plan.bytes))
    return plan


def _sizes(target: Target, goal: float, eta: float, geometry: float) -> tuple[tuple[int, ...], float, float, float]:
    """(cells, sharpness, bound, most that f differs between neighbouring cells) with bound ≤ goal."""
    D, modulus = target.dimension, target.modulus
    if modulus.lipschitz is not None:
        per_side = [L * float(s) for L, s in zip(modulus.lipschitz, target.domain.sides, strict=True)]
        counts = _counts(per_side, (1 - eta) * goal)
        cells = sum(L * (0.5 / n + geometry) for L, n in zip(per_side, counts, strict=True)) * UP_FEW
        if not cells < goal:
            found = f"{at_most(cells, 3)} from the cells alone"
            raise InputError(f"cells for a bound of {at_least(goal, 3)}", found, "use a larger tolerance")
        sharpness = max(LN4 * sum(per_side) / (goal - cells), 1.0) * UP_FEW
        bound = (cells + LN4 * sum(per_side) / sharpness) * UP_FEW
        return counts, sharpness, bound, max(L / n for L, n in zip(per_side, counts, strict=True)) * UP_FEW
    assert modulus.omega is not None
    n = _cells_for(modulus.omega, (1 - eta) * goal, geometry, goal)
    sharpness = _sharpness_for(modulus.omega, 0.5 / n + geometry, D, goal)
    return (n,) * D, sharpness, expected_modulus(modulus.omega, 0.5 / n + geometry, sharpness, D), modulus.omega(1 / n)


def theorem_rounding(
    target: Target,
    counts: tuple[int, ...],
    sharpness: float,
    step: float,
    actual: tuple[float, float, float] | None = None,
    wide: float = 0.0,
) -> dict[str, float]:
    """What floating point adds to the theorem's bound, term by term.

    Beforehand, with values y_k − f(centre) of size at most R: Σ|Δ_k| ≤ R + M·2^(D−1)·`step`, `step` the most that f differs
    between neighbouring cells. Afterwards `actual` has the numbers: (Σ|Δ_k|, max |y_k − f(centre)|, error of the values).
    """
    D, M = target.dimension, math.prod(counts)
    centre = abs(target.centre).max()
    if actual is None:
        modulus = target.modulus
        if modulus.lipschitz is not None:
            R = sum(L * float(s) for L, s in zip(modulus.lipschitz, target.domain.sides, strict=True))
        else:
            assert modulus.omega is not None
            R = modulus.omega(1.0)
        total, largest, error = R + M * 2.0 ** (D - 1) * step, R, 4 * U * (centre + R) + target.evaluation_error
    else:
        total, largest, error = actual
    dot = M * U / (1 - M * U)  # of the sum over the heads
    evaluation = 1.01 * (total * (gate_rounding(D, reach_of(target), sharpness) + dot) + (M + 1) * U * centre)
    return {
        "values": error * UP_FEW,
        "differences": M * D * 2.0**D * U * largest * 1.01 + M * D * 2.0**-1073,
        # in the layout "heads" the bias f(centre) is one more summand of the dot product over the heads
        "evaluation": evaluation + 2 * U * (largest + centre) + M * 2.0**-1073,
        "selection": 8 * U * wide,
    }


def gate_rounding(dimension: int, reach: float, sharpness: float) -> float:
    """How far a computed gate can be from F: an average of one 1 and 0s, by the running error of a head (`rounding.running`).

    Centre and scale of the box are rounded, and x̂ twice, in all e_x; of s_j = fl(fl(β b_j) − fl(β x̂_j)), at most β in size, b_j
    and three operations are. Masked tokens have weight 0 exactly.
    """
    e_x = U * (3 + 2 * reach) * 1.01
    score = abs(sharpness) * (e_x + 2.75 * U)
    epsilon = running.exponentials(np.array(1.01 * (score + 2 * abs(sharpness) * U + FLOAT64.exp_error)))
    one, zero = np.array(1.0), np.array(0.0)
    return float(running.moved(epsilon, 1.0) + running.averages(dimension + 1, one, one, zero, FLOAT64))


def _counts(per_side: list[float], goal: float) -> tuple[int, ...]:
    """Cells per coordinate with Σ_j L_j/(2 n_j) ≤ goal and a small product: equal shares, then fewer where possible."""
    active = [L for L in per_side if L > 0]
    counts = [max(1, math.ceil(min(len(active) * L / (2 * goal), 1e300))) if L > 0 else 1 for L in per_side]
    if max(counts) > MOST_HEADS:  # refused anyway
        return tuple(counts)
    while True:  # remove cells where that shrinks the product most, as long as the sum allows
        spent = sum(L * 0.5 / n for L, n in zip(per_side, counts, strict=True))
        fewer = [
            j
            for j, (L, n) in enumerate(zip(per_side, counts, strict=True))
            if n > 1 and spent + L * 0.5 / (n - 1) - L * 0.5 / n <= goal
        ]
        if not fewer:
            return tuple(counts)
        counts[min(fewer, key=lambda j: counts[j])] -= 1


def _cells_for(omega: Callable[[float], float], goal: float, geometry: float, tolerance: float) -> int:
    """The least n (up to a few percent) with ω(1/(2n) + geometry) ≤ goal."""
    n = 1
    while omega(0.5 / n + geometry) > goal:
        n = max(n + 1, math.ceil(n * 1.05))
        if n > MOST_HEADS:
            raise InputError(
                f"cells on which f varies by at most {at_least(goal, 3)}",
                f"none proved down to 1/{MOST_HEADS:,} of a side (f may jump)",
                f"use a tolerance above {exact(tolerance)}, or a continuous target",
            )
    return n


def _sharpness_for(omega: Callable[[float], float], cell: float, dimension: int, goal: float) -> float:
    sharpness = 1.0
    while expected_modulus(omega, cell, sharpness, dimension) > goal:
        sharpness *= 1.25
        if sharpness > 1e13:
            raise InputError("a sharpness that reaches the tolerance", "none up to 1e13", "use a larger tolerance")
    return sharpness


def expected_modulus(omega: Callable[[float], float], cell: float, sharpness: float, dimension: int) -> float:
    """An upper bound on E ω(cell + R/β): on each slice of probability, ω at the slice's far end; ω(1) beyond the last."""
    ratio, p, total = 0.8, 1.0, 0.0
    while p > 1e-9:
        tail = p * ratio
        t = math.log(2 * dimension / tail - 1) * UP_FEW
        total += (p - tail) * omega(min(cell + t / sharpness, 1.0))
        p = tail
    return (total + p * omega(1.0)) * UP_FEW


def representative_layer(target: Target, plan: Plan, progress: Progress | None = None) -> tuple[GateLayer, float]:
    """One gate per cell, values from f at the cells' centres; and a bound on the error of those values."""
    lattice = Lattice(plan.counts)
    values, error = np.empty((lattice.cells, target.outputs)), 0.0
    for start in range(0, lattice.cells, EVALUATED_AT_ONCE):
        stop = min(start + EVALUATED_AT_ONCE, lattice.cells)
        points = target.domain.points(lattice.representatives(start, stop))
        values[start:stop], found = target.values_with_error(points)
        error = max(error, found)
        if progress:
            progress("representatives", stop / lattice.cells)
    values -= target.centre  # the bias: large offsets of f then cost no rounding
    error += U * float(np.abs(values).max())
    deltas = torch.from_numpy(lattice.differences(values))
    slots = torch.zeros(lattice.cells, target.dimension + 2, target.outputs, dtype=torch.float64)
    slots[:, 0] = deltas
    bias = torch.from_numpy(target.centre.copy())
    return gate_layer(bias, target.dimension, (lattice.gates(plan.sharpness), slots)), error


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _too_large(target: Target, tolerance: float, units: int, size: int | None) -> tuple[str, str, str]:
    D = target.dimension
    fits = memory_bytes() / (5 * 8 * 4 * (D + 3))  # heads whose weights and working copies fit
    feasible = 1.1 * math.exp(math.log(tolerance) + (math.log(units) - math.log(min(fits, MOST_HEADS))) / D)
    heads = f"{units:,}" if units < 10**15 else f"some 10^{math.log10(units):.0f}"
    needs = f"{heads} heads" + (f", {size / 1e9:.3g} GB of weights" if size else "")
    return (
        f"method='representative' at tolerance {exact(tolerance)}",
        f"it needs {needs}; this machine has {memory_bytes() / 1e9:.3g} GB",
        f"use method='solved', which needs far fewer heads, or a tolerance of about {feasible:.2g}",
    )
