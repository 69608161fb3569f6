"""How large a layer is and what it costs, compared with the plan."""

import html
from typing import cast, get_args

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.table import Table
from ..construction.plan import Plan
from ..construction.representative.layer import plan_representative
from ..layer.assemble import Layout
from .certificate_text import Shown

MOST_STEEP = 3  # variables of a function with unbounded slopes for which a plan is worth its time


def size_table(approximation: Shown) -> Table:
    """Units, heads, parameters, bytes, operations, cancellation."""
    low = approximation.certificate.weight_format
    facts, model = approximation.facts, approximation.model
    c = model.config
    rows: list[tuple[object, ...]] = [
        ("method, construction, layout", f"{facts.method}, {facts.construction}, {facts.layout}"),
        ("units", f"{facts.units:,}"),
        ("heads", ", ".join(f"{count:,} {kind}" for kind, count in facts.heads)),
        ("tokens", f"{c.tokens:,} data, {c.special_tokens:,} special"),
        ("d_model, d_k, d_v, FFN width", f"{c.d_model:,}, {c.d_k:,}, {c.d_v:,}, {c.ffn_width:,}"),
        ("parameters", f"{approximation.parameters:,}"),
        ("bytes", f"{approximation.bytes:,}" + (f", as {low}" if low else "")),
        ("operations per evaluation", f"{c.operations:,}"),
    ]
    rows += [
        *facts.sizes,
        ("seconds to build and prove", f"{facts.seconds:.1f}"),
        *(("note", note) for note in facts.notes),
    ]
    return Table("What was built", ("", "value"), rows)


def plan_html(approximation: Approximation) -> str:
    """The plan next to what was built, as HTML: the plan that was followed, or what the paper's own construction would need."""
    plan, title = plan_followed(approximation), "The plan, made before building"
    if plan is None:
        title = "Compared with the paper's own construction, planned but not built"
        target = approximation.target
        if target is None or target.formula is None or target.domain.within is not None:
            return ""
        if target.dimension > MOST_STEEP and target.modulus.lipschitz is None:
            return '<p class="note">The paper\'s own construction is out of reach: the slopes of f are not bounded.</p>'
        try:
            plan = plan_representative(target, approximation.certificate.tolerance)
        except InputError as refusal:
            reason = html.escape(f"for this tolerance {refusal.found}.")
            return f'<p class="note">The paper\'s own construction is out of reach: {reason}</p>'
    return _plan_table(approximation, plan, title)._repr_html_()


def plan_followed(approximation: Approximation) -> Plan | None:
    """The plan of a representative layer, made again from its target and tolerance.

    None for other methods, and where it cannot be the same plan: a folder keeps no declared modulus.
    """
    target, facts = approximation.target, approximation.facts
    if target is None or facts.method != "representative" or facts.layout not in get_args(Layout):
        return None
    try:
        plan = plan_representative(target, approximation.certificate.tolerance, layout=cast(Layout, facts.layout))
    except InputError:
        return None
    return plan if plan.units == facts.units else None


def _plan_table(approximation: Approximation, plan: Plan, title: str) -> Table:
    rows: list[tuple[object, ...]] = [
        ("method", plan.method, approximation.facts.method),
        ("units", f"{plan.units:,}", f"{approximation.units:,}"),
        ("parameters", f"{plan.parameters:,}", f"{approximation.parameters:,}"),
        ("operations per evaluation", f"{plan.operations:,}", f"{approximation.model.config.operations:,}"),
        ("bound", f"{plan.bound_text} ({plan.known})", approximation.certificate.stated_bound),
    ]
    return Table(title, ("", "planned", "built"), rows)
