"""Circuit: the heads and hidden units of a layer, their edges, and the proved effect of ablating each of them.

"Without" a node means zero ablation: what the head writes through its rows of W^O, or the unit through its row of W^2, is
replaced by 0, and everything else stays. The effect is sup |T − T without it| over the domain, the largest over outputs and
positions.
Effects of single nodes do not add up: two heads that cancel have large effects, and none together.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...common.atomic import require_new, write_file
from ...common.budget import Budget
from ...common.numbers import at_least, at_most
from ...common.progress import Progress
from ...common.table import Table
from .effects import AblatedLayer, Effect
from .graph import Edge, Node, edges_of, nodes_of

CIRCUIT_SCHEMA = 1
MEANING = (
    "effect: lower <= sup |T - T without the node| <= upper over the domain, the largest over outputs and positions, both proved;"
    " without: what the head writes through its rows of W_O, or the unit through its row of W_2, is replaced by 0"
)


@dataclass(frozen=True)
class CircuitNode:
    """A head or a hidden unit (`index` counts from 0, as in the weights) and its effect; upper is ∞ where nothing is proved.

    `role` is for layers whose making is known: "layer" for what computes the function, else the kind of distractor.
    """

    name: str
    kind: str
    index: int
    lower: float
    upper: float
    point: tuple[float, ...] | None
    method: str
    does: str = ""
    role: str = ""

    @property
    def effect(self) -> str:
        high = at_most(self.upper, 4) if math.isfinite(self.upper) else "∞"
        return f"{at_least(self.lower, 4)} … {high}"


@dataclass(frozen=True)
class Circuit:
    """Nodes with proved effects, and edges by name, from inputs to heads, to hidden units, to outputs."""

    nodes: tuple[CircuitNode, ...]
    edges: tuple[Edge, ...]
    domain: str
    weights: str  # digest of the weights that this is about
    accuracy: float
    assumptions: tuple[str, ...] = ()
    together: float | None = None  # proved: the layer without all distractors is within this of the layer

    def __getitem__(self, name: str) -> CircuitNode:
        return next(node for node in self.nodes if node.name == name)

    def __iter__(self) -> Iterator[CircuitNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def heads(self) -> tuple[CircuitNode, ...]:
        return tuple(node for node in self.nodes if node.kind == "head")

    def as_json(self) -> dict[str, Any]:
        """A dictionary for JSON; an upper end that is not proved is null."""
        record: dict[str, Any] = {"schema": CIRCUIT_SCHEMA, "meaning": MEANING} | asdict(self)
        for node in record["nodes"]:
            node["upper"] = node["upper"] if math.isfinite(node["upper"]) else None
        return record

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the circuit as JSON; a file of that name is refused, unless `overwrite=True`."""
        path = Path(path)
        require_new(path, overwrite)
        return write_file(path, json.dumps(self.as_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def table(self) -> Table:
        roles = any(node.role for node in self.nodes)
        columns = ("node", "does", "effect (proved)", "proved by", "leads to", *(["role"] if roles else []))
        rows: list[tuple[object, ...]] = []
        for node in sorted(self.nodes, key=lambda node: -node.lower):
            leads = _few([end for start, end in self.edges if start == node.name])
            rows.append((node.name, node.does, node.effect, node.method, leads, *([node.role] if roles else [])))
        return Table(f"Circuit on {self.domain}", columns, rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Naming:
    """What tokens, outputs and heads are called in a circuit."""

    tokens: list[str]
    outputs: list[str]
    heads: list[str]


def circuit_of(
    layer: AblatedLayer, names: Naming, accuracy: float, budget: Budget, seed: int = 0, progress: Progress | None = None
) -> Circuit:
    """The circuit of a layer; every node gets an equal share of the time that is left."""
    nodes, found = nodes_of(layer.model), list[CircuitNode]()
    for i, node in enumerate(nodes):
        if progress:
            progress(f"effect of {node.name}", i / len(nodes))
        effect = layer.effect(node, accuracy, budget.share(1 / (len(nodes) - i)), seed)
        found.append(_circuit_node(node, effect, names.heads[node.index] if node.kind == "head" else "hidden unit"))
    edges = edges_of(layer.model, names.tokens, names.outputs)
    return Circuit(tuple(found), edges, layer.inputs, layer.model.fingerprint(), accuracy, layer.assumptions)


def _circuit_node(node: Node, effect: Effect, does: str) -> CircuitNode:
    return CircuitNode(node.name, node.kind, node.index, effect.lower, effect.upper, effect.point, effect.method, does)


def _few(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
