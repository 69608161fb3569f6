"""How large a layer is and what it costs, beside what was planned."""

import html
import math

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.table import Table, at_most
from ..construction.plan import Plan


def size_table(approximation: Approximation) -> Table:
    """Units, heads, parameters, bytes, operations, cancellation."""
    facts, model = approximation.facts, approximation.model
    c = model.config
    rows: list[tuple[object, ...]] = [
        ("method, construction, layout", f"{facts.method}, {facts.construction}, {facts.layout}"),
        ("units", f"{facts.units:,}"),
        ("heads", ", ".join(f"{count:,} {kind}" for kind, count in facts.heads)),
        ("tokens", f"{c.tokens:,} data, {c.special_tokens:,} special"),
        ("d_model, d_k, d_v, FFN width", f"{c.d_model:,}, {c.d_k:,}, {c.d_v:,}, {c.ffn_width:,}"),
        ("parameters", f"{approximation.parameters:,}"),
        ("bytes", f"{approximation.parameters * model.W_E.element_size():,}"),
        ("operations per evaluation", f"{c.operations:,}"),
        *(
            []
            if facts.method == "trained"
            else [  # not known of trained layers
                ("Σ|c|: how much heads cancel", f"{facts.total:.4g}"),
                ("largest score", f"{facts.largest_score:.4g}"),
            ]
        ),
        ("seconds to build and prove", f"{facts.seconds:.1f}"),
        *(("note", note) for note in facts.notes),
    ]
    return Table("What was built", ("", "value"), rows)


def plan_table(approximation: Approximation) -> str:
    """The plan beside what was built, as HTML: the plan that was followed, or what the paper's own construction would need."""
    plan, followed = approximation.plan, True
    if plan is None:
        followed = False
        target, tolerance = approximation.target, approximation.certificate.tolerance
        if target is None or target.formula is None or target.domain.where is not None:
            return ""
        from ..construction.representative.construction import plan_representative

        try:
            plan = plan_representative(target, tolerance, None, "token")
        except InputError as refusal:
            return (
                f'<p class="note">The paper\'s own construction is out of reach: {html.escape(_refused(refusal))}</p>'
            )
    title = (
        "The plan, made before building" if followed else "Beside the paper's own construction, planned but not built"
    )
    return _beside(approximation, plan, title)._repr_html_()


def _refused(refusal: InputError) -> str:
    return f"asked for {refusal.asked}, found: {refusal.found}."


def _beside(approximation: Approximation, plan: Plan, title: str) -> Table:
    bound = approximation.certificate.bound
    proved = at_most(bound) if math.isfinite(bound) else "none"
    rows: list[tuple[object, ...]] = [
        ("method", plan.method, approximation.facts.method),
        ("units", f"{plan.units:,}", f"{approximation.units:,}"),
        ("parameters", f"{plan.parameters:,}", f"{approximation.parameters:,}"),
        ("operations per evaluation", f"{plan.operations:,}", f"{approximation.model.config.operations:,}"),
        (
            "bound",
            f"{at_most(plan.bound)} ({'proved' if plan.proved else 'estimate'})",
            proved,
        ),
    ]
    return Table(title, ("", "planned", "built"), rows)
