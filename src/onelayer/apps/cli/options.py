"""Options that several commands share, and how their text is read: domains, shapes, lists of numbers."""

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...common.checks import LARGEST_SEED
from ...common.errors import InputError
from ...target.sides import read_domain, split

if TYPE_CHECKING:
    from ...target.target import Target


class Method(StrEnum):
    polished = "polished"
    solved = "solved"
    representative = "representative"


class Construction(StrEnum):
    auto = "auto"
    gates = "gates"
    memory = "memory"


class Layout(StrEnum):
    token = "token"
    wide = "wide"
    heads = "heads"


class Dtype(StrEnum):
    float64 = "float64"
    float32 = "float32"


class BuildDtype(StrEnum):
    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"


class WeightFormat(StrEnum):
    int8 = "int8"


class LayerAttention(StrEnum):
    """Of the layer itself; `Attention` says how one is evaluated."""

    softmax = "softmax"
    linear = "linear"
    sigmoid = "sigmoid"
    sparsemax = "sparsemax"
    local = "local"


class Attention(StrEnum):
    auto = "auto"
    softmax = "softmax"
    fused = "fused"
    linear = "linear"
    sparse = "sparse"
    adaptive = "adaptive"


class Activation(StrEnum):
    relu = "relu"
    gelu = "gelu"
    silu = "silu"


class Outside(StrEnum):
    allow = "allow"
    error = "error"
    clip = "clip"


FormulaText = Annotated[
    str,
    typer.Argument(
        metavar="FORMULA",
        help='For example "x*exp(-y^2)"; separate several outputs with ";". Functions and names: docs/start/formulas.md.',
    ),
]
DomainText = Annotated[
    str,
    typer.Option(
        "--domain",
        metavar="LOW:HIGH",
        help='One interval for all variables; "0:1, -1:2*pi" for x1, x2, … or x, y, z, t; or named: "T=280:350, p=1:10".',
    ),
]
OptionalDomain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="LOW:HIGH",
        help='One interval for all variables; "0:1, -1:2*pi" for x1, x2, … or x, y, z, t; or named: "T=280:350, p=1:10"; '
        "by default the box around samples.",
    ),
]
Eps = Annotated[float, typer.Option("--eps", "--tolerance", help="Largest error allowed anywhere in the domain.")]
SlopeEps = Annotated[
    float | None,
    typer.Option("--slope-eps", help="Largest error allowed of every slope, proved beside that of the values."),
]
Relative = Annotated[
    bool,
    typer.Option("--relative", help="The tolerance is a share of the smallest |f| on the domain, which is proved."),
]
LayoutChoice = Annotated[Layout, typer.Option(help="Where the outputs are read.")]
BuildDtypeChoice = Annotated[
    BuildDtype | None,
    typer.Option(
        help="Number type, float64 by default; the certificate holds for this arithmetic only (bfloat16: run in float32)."
    ),
]
WeightsChoice = Annotated[
    WeightFormat | None, typer.Option(help="Store matrices as int8, a power of two for each column; run in float32.")
]
DtypeChoice = Annotated[Dtype, typer.Option(help="Number type; the certificate holds for this arithmetic only.")]
Lipschitz = Annotated[
    str | None,
    typer.Option(
        metavar="L or L1,L2,…",
        help="Declared Lipschitz constants. A formula needs none: its own are derived, these only checked.",
    ),
]
Within = Annotated[str | None, typer.Option(metavar="CONDITION", help='Only where this holds: "x^2 + y^2 <= 1".')]
Shape = Annotated[str | None, typer.Option(metavar="n,d", help="Read the variables as n tokens of d numbers each.")]
OutputShape = Annotated[str | None, typer.Option(metavar="n,m", help="Read the outputs as a sequence.")]
Margin = Annotated[float, typer.Option(help="Distance from the jumps of where(…) within which nothing is claimed.")]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of all random choices.")]
Checkpoint = Annotated[str | None, typer.Option(metavar="FILE", help="Written in training; resumed from if it exists.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Out = Annotated[str, typer.Option(metavar="FOLDER", help="The model folder to write.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier model; other files in the folder stay.")]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace a file of that name.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Report = Annotated[bool, typer.Option(help="Write report.html into the folder, a page of pictures.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit status says it all.")]


def target_of(formula: str, domain: str, eps: float, about: dict[str, Any] | None = None) -> "Target":
    """The target of a formula, with the tolerance checked; bad text is refused before torch is imported."""
    about = about or {}
    sides, within = read_domain(domain), about.get("within")
    from ...formula import parse
    from ...target.naming import named, spread

    sides = spread(sides, formula, within, math.prod(about.get("shape", ())))
    by_name = sides if isinstance(sides, dict) else named(sides, formula, within)
    parse(formula, tuple(by_name) if isinstance(by_name, dict) else tuple(f"x{j + 1}" for j in range(len(sides))))
    from ...target.target import Target, require_tolerance

    require_tolerance(eps)
    return Target(formula, sides, **about)


def require_domain(domain: str | None) -> str:
    if domain is None:
        raise InputError("a domain for the formula", "none", 'give --domain, such as --domain "0:1"')
    return domain


def about_target(
    lipschitz: str | None = None,
    within: str | None = None,
    shape: str | None = None,
    output_shape: str | None = None,
    margin: float = 0.0,
    symmetric: bool = False,
) -> dict[str, Any]:
    """Options of a target, read from text."""
    about: dict[str, Any] = {"margin": margin, "symmetric": symmetric}
    if lipschitz is not None:
        constants = [number(part, "--lipschitz") for part in split(lipschitz, ",")]
        about["lipschitz"] = constants[0] if len(constants) == 1 else constants
    if within is not None:
        about["within"] = within
    if shape is not None:
        about["shape"] = sizes(shape, "--shape")
        if len(about["shape"]) != 2:
            raise InputError("--shape n,d", f"{shape!r}", "give two positive numbers such as 3,2")
    if output_shape is not None:
        about["output_shape"] = sizes(output_shape, "--output-shape")
    return about


def number(text: str, what: str) -> float:
    """A finite number from a decimal or a constant formula such as pi/2."""
    try:
        value = float(text)
    except ValueError:
        value = _constant(text, what)
    if not math.isfinite(value):
        raise InputError(f"finite numbers for {what}", f"{text!r}", "give numbers such as 1.5, -2e-3 or pi/2")
    return value


def sizes(text: str, what: str) -> tuple[int, ...]:
    """Positive integers separated by commas."""
    parts = list(split(text, ","))
    if not all(part.isascii() and part.isdigit() and len(part) < 10 and int(part) > 0 for part in parts):
        raise InputError(f"{what}: positive whole numbers separated by commas", f"{text!r}", "write for instance 2,2")
    return tuple(map(int, parts))


def _constant(text: str, what: str) -> float:
    from ...formula import evaluate, parse

    try:
        formula = parse(text, ())
    except InputError as refusal:
        raise InputError(f"numbers for {what}", refusal.found, "give numbers such as 1.5, -2e-3 or pi/2") from None
    if len(formula.outputs) != 1:
        raise InputError(f"one number at a time for {what}", f"{text!r}", "separate numbers with spaces")
    import numpy as np

    return float(np.asarray(evaluate(formula, np.zeros((1, 0))))[0, 0])
