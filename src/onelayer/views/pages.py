"""Pages: their HTML, and the JSON from which a page draws an approximation and computes its layer.

A formula as steps that a page can run (assets/formula.js): [name, arguments…], children first, each value by its place.
"""

import base64
import html
import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from string import Template
from typing import Any

import numpy as np

from ..approximation import Approximation
from ..formula import Formula
from ..formula.expression import Algebra
from ..formula.functions import FUNCTIONS
from ..formula.tree import Call, postorder
from . import certificate_text
from .page_files import asset, plotly_source
from .scene import Scene, output_names
from .sections import slider_ends, start_point, why_not_on_page

SEVERAL = ("atan2", "min", "max")  # functions of several variables


def formula_record(formula: Formula | None) -> dict[str, Any] | None:
    """{steps, outputs}: the outputs are places of values. None where f is no formula, or has functions that pages lack."""
    calls = [tree.name for tree in postorder(formula.outputs if formula else ()) if isinstance(tree, Call)]
    if formula is None or not all(name in SEVERAL or (name in FUNCTIONS and FUNCTIONS[name].array) for name in calls):
        return None
    steps = StepList()
    outputs = formula.tape.run(steps)
    return {"steps": steps.found, "outputs": outputs}


class StepList(Algebra[int, int]):
    """Every value is its place in the list."""

    key: Hashable = None

    def __init__(self) -> None:
        self.found: list[list[Any]] = []

    def _add(self, name: str, *arguments: Any) -> int:
        self.found.append([name, *arguments])
        return len(self.found) - 1

    def number(self, value: Fraction) -> int:
        return self._add("number", float(value))

    def constant(self, name: str) -> int:
        return self._add("number", math.pi if name == "pi" else math.e)

    def variable(self, index: int) -> int:
        return self._add("variable", index - 1)

    def sum(self, terms: Sequence[int]) -> int:
        return self._add("sum", *terms)

    def negation(self, operand: int) -> int:
        return self._add("negation", operand)

    def product(self, factors: Sequence[int]) -> int:
        return self._add("product", *factors)

    def quotient(self, dividend: int, divisor: int) -> int:
        return self._add("quotient", dividend, divisor)

    def integer_power(self, exponent: int, base: int) -> int:
        return self.power(base, self.number(Fraction(exponent)))

    def rational_power(self, exponent: Fraction, base: int) -> int:
        return self.power(base, self.number(exponent))

    def power(self, base: int, exponent: int) -> int:
        return self._add("power", base, exponent)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        return self._add(name, *arguments)

    def where(self, condition: int, yes: int, no: int) -> int:
        return self._add("where", condition, yes, no)

    def comparison(self, relation: str, left: int, right: int) -> int:
        return self._add(relation, left, right)

    def conjunction(self, parts: Sequence[int]) -> int:
        return self._add("and", *parts)

    def disjunction(self, parts: Sequence[int]) -> int:
        return self._add("or", *parts)

    def complement(self, part: int) -> int:
        return self._add("not", part)


PLAIN_SCRIPTS = ("picture.js", "scheme.js", "report.js")  # of a page with figures alone
LAYER_SCRIPTS = ("layer.js", "formula.js", "walk_steps.js", "walk.js", *PLAIN_SCRIPTS)


@dataclass(frozen=True)
class Page:
    """A self-contained page. `title` and `facts` are text, `intro` and bodies of sections HTML; scripts and styles are assets."""

    title: str
    kind: str
    intro: str
    facts: list[tuple[str, str]]  # (value, what it is)
    sections: list[tuple[str, str, str]]  # (id, title, body); those without a body are left out
    data: dict[str, Any]
    scripts: tuple[str, ...]
    styles: tuple[str, ...] = ("report.css",)

    def render(self) -> str:
        """The page as text."""
        shown = [(name, html.escape(title), body) for name, title, body in self.sections if body]
        return Template(asset("page.html")).substitute(
            title=html.escape(self.title),
            kind=self.kind,
            intro=self.intro,
            facts=facts_html(self.facts),
            nav="".join(f'<a href="#{name}">{title}</a>' for name, title, _ in shown),
            body="".join(f'<section id="{name}"><h2>{title}</h2>{body}</section>' for name, title, body in shown),
            css="".join(map(asset, self.styles)),
            plotly=plotly_source(),
            scripts="\n".join(f"<script>{asset(name)}</script>" for name in self.scripts),
            data=json.dumps(self.data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c"),
        )


def facts_html(facts: list[tuple[str, str]]) -> str:
    """Numbers in boxes, with what they are below them."""
    return "".join(f'<div class="fact"><b>{html.escape(v)}</b><span>{html.escape(k)}</span></div>' for v, k in facts)


def page_data(approximation: Approximation, found: tuple[Scene, ...], figures: dict[str, Any]) -> dict[str, Any]:
    """For assets/picture.js: figures by the id of their element, scenes for the sliders, the layer."""
    scene_records = [scene_record(scene) for scene in found]
    return figures_data(figures) | {"scenes": scene_records, "layer": layer_record(approximation)}


def figures_data(figures: dict[str, Any]) -> dict[str, Any]:
    """For assets/picture.js: figures alone."""
    return {"figures": {name: json.loads(f.to_json()) for name, f in figures.items()}, "scenes": [], "layer": None}


def layer_record(approximation: Approximation) -> dict[str, Any] | None:
    """For assets/layer.js and walk.js; None if a page cannot compute it. `target` is f, where it is a formula."""
    if why_not_on_page(approximation):
        return None
    facts, c, target = approximation.facts, approximation.model.config, approximation.target
    kinds = [kind for kind, count in facts.heads for _ in range(count)]
    return {
        "config": asdict(c),
        "weights": {name: array_record(t.detach().numpy()) for name, t in approximation.model.state_dict().items()},
        "places": list(facts.places),
        "vocabulary": approximation.vocabulary,
        "kinds": kinds if len(kinds) == c.heads else ["head"] * c.heads,
        "tokens": approximation.token_names(),
        "start": start_point(approximation),
        "names": list(approximation.domain.names),
        "ends": slider_ends(approximation),
        "outputs": output_names(approximation),
        "target": formula_record(target.formula if target is not None else None),
        "band": certificate_text.band(approximation),
    }


def scene_record(scene: Scene) -> dict[str, Any]:
    arrays = {"T": scene.T, "error": scene.error}
    if scene.f is not None and np.isfinite(scene.f[~scene.claimed]).any():
        arrays["f"] = scene.f  # otherwise the page takes T minus the error
    return {
        "sides": [len(axis) for axis in scene.axes],
        "stops": [stops.tolist() for stops in scene.stops],
        **{name: None if a is None else array_record(_compact(a)) for name, a in arrays.items()},
    }


def _compact(a: np.ndarray) -> np.ndarray:
    """In single precision, if the numbers fit."""
    size = np.abs(a[np.isfinite(a) & (a != 0)])
    fits = size.max(initial=0.0) < 1e30 and size.min(initial=1.0) > 1e-30
    return a.astype(np.float32) if fits else a


def array_record(a: np.ndarray) -> dict[str, Any]:
    content = base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()
    return {"shape": list(a.shape), "dtype": str(a.dtype), "base64": content}
