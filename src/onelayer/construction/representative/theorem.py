"""The certificate of the repaired theorem: a bound that was known before building, plus what floating point adds.

sup |T − f| ≤ (a-priori bound of the plan)                       exact T with exact values
            + (error of the values y_k)                          T averages the y_k
            + M·D·2^D·u·max|y|                                   mixed differences in floating point
            + Σ|Δ_k|·(|ΔF| + Mu/(1−Mu)) + …                      evaluating the heads (`gate_rounding`)
            + 8uB in the layout "wide"                           selecting by position: a few roundings of size 2B
"""

from ...common.numbers import exact
from ...common.outward import UP_FEW, U
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Layout
from ...layer.assemble.gate_heads import bound_of_outputs
from ...layer.layer import GateLayer
from ...proof.certificate import Certificate, Evidence
from ...target.declared import condition_of
from ...target.target import Target
from ..plan import Plan
from .layer import theorem_rounding


def certify_theorem(target: Target, plan: Plan, layer: GateLayer, values_error: float, layout: Layout) -> Certificate:
    """The certificate of a representative layer built after `plan`, nothing observed yet."""
    M = plan.units
    deltas = layer.gate_values[:, 0]
    total = float(deltas.abs().sum(dim=0).max()) * (1 + M * U)
    wide = bound_of_outputs(layer) if layout == "wide" else 0.0
    rounding = theorem_rounding(target, plan.counts, plan.sharpness, 0.0, (total, total, values_error), wide)
    terms = {name: float(term) for name, term in ({"a priori": plan.bound} | rounding).items()}
    modulus = target.modulus
    assumptions = [*FLOAT64.assumptions, "explicit softmax attention (other kernels add their own rounding)"]
    if modulus.kind == "declared":
        assumptions.append(f"the modulus of continuity as declared, on the whole box ({modulus})")
    if target.kind == "callable":
        assumptions.append(f"the callable's values are within {exact(target.evaluation_error)} of f (declared)")
    if modulus.kind == "estimated":
        assumptions.append("nothing is proved: the modulus was estimated by sampling")
    return Certificate(
        tolerance=plan.tolerance,
        bound=sum(terms.values()) * UP_FEW if plan.proved else float("inf"),
        observed=0.0,
        observed_points=0,
        method="theorem",
        domain=str(target.domain),
        assumptions=tuple(assumptions),
        evidence=Evidence(
            cells=plan.counts,
            sharpness=plan.sharpness,
            modulus=str(modulus),
            lipschitz=modulus.lipschitz,
            terms=terms,
            total=total,
        ),
        condition=condition_of(target),
    )
