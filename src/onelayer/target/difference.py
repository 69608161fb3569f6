"""The difference p − q of two formulas on a domain, as a target: how far apart they are is how far it is from 0."""

from dataclasses import replace
from typing import Any

from ..common.errors import InputError
from ..common.numbers import counted
from ..formula import parse, to_text
from ..formula.tree import Negation, Node, Sum
from .domain import Domain, domain_of, sides_of
from .naming import named, spread
from .target import Target


def difference(
    p: str | Target, q: str | Target, domain: Any = None, within: str | None = None
) -> tuple[Target, Target]:
    """(p − q, both of them as outputs of one target). Formulas are text, or targets, which have their domain with them."""
    texts = [_text(one) for one in (p, q)]
    own = [one.domain for one in (p, q) if isinstance(one, Target)]
    if own and (domain is not None or within is not None or any(one != own[0] for one in own)):
        raise InputError("one domain", "a Target and another domain beside it", "give the domain once")
    joined = "; ".join(parse(text).text for text in texts)
    if own:
        place = own[0]
    elif domain is None:
        raise InputError("a domain", "none", "give (low, high) for every variable")
    else:
        place = domain if isinstance(domain, Domain) else _box(texts, joined, domain, within)
    both = Target(joined, place)
    assert both.formula is not None
    m = both.outputs // 2
    if len(parse(texts[0]).outputs) != m or both.outputs % 2:
        counts = " and ".join(counted(len(parse(text).outputs), "output") for text in texts)
        raise InputError("two formulas with as many outputs", counts, "separate outputs with ;")
    outputs: list[Node] = [
        Sum((a, Negation(b))) for a, b in zip(both.formula.outputs[:m], both.formula.outputs[m:], strict=True)
    ]
    names = both.formula.names
    apart = both.part(
        replace(both.formula, text="; ".join(to_text(one, names) for one in outputs), outputs=tuple(outputs))
    )
    apart.output_shape = (m,)
    return apart, both


def _text(one: str | Target) -> str:
    if isinstance(one, str):
        return one
    if one.formula is None:
        raise InputError("formulas on both sides", f"a target that is a {one.kind}", "pass text, or Target(formula, …)")
    return one.formula.text


def _box(texts: list[str], joined: str, domain: Any, within: str | None) -> Domain:
    """The domain by the names of both formulas; a formula that declares its variables, f(x, y) = …, decides their order."""
    lead = next((text for text in texts if parse(text).declared), joined)
    sides = sides_of(domain)
    if isinstance(sides, list):
        sides = named(spread(sides, lead, within) if isinstance(domain, str) else sides, lead, within)
    return domain_of(sides, within)
