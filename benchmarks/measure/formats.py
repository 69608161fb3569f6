"""The smallest tolerance at which float32, bfloat16 and int8 layers are CERTIFIED, per named target; and their exports.

The tolerance is halved from 1e-2 until a build fails. A layer that misses the tolerance it was built for still has a proved
bound, and is certified for that: ε is the smallest bound proved, beside it in units of u·(range of f), u = 2^−24, the error
observed at float32 points, the part of the bound that is rounding, and the size of all stored numbers. The second table is about
the exports of these layers: the largest difference from our own layer at 100,000 random points, and the bound on it where one is
proved (what is proved of a torch folder is about exact arithmetic, and left out). It takes an hour. `--layers FOLDER` keeps the
layers there; run again, it goes on from them. `--page` writes the tables into formats.md.
"""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.numbers import at_least, at_most
from onelayer.layer.arithmetic import FLOAT32
from page import markdown, options, page_of, placed
from targets import TARGETS, Named, named

FORMATS: dict[str, dict[str, Any]] = {
    "float32": {"dtype": "float32"},
    "bfloat16": {"dtype": "bfloat16"},
    "int8": {"weights": "int8"},
}
STEPS = [10.0**-2 / 2**i for i in range(20)]
MOST_VARIABLES = 2
SECONDS = 300.0  # of a build
POINTS = 100_000
EXPORTS: list[dict[str, Any]] = [{"to": "onnx"}, {"to": "c"}, {"to": "torch"}]
COLUMNS = [
    "target",
    "weights",
    "ε",
    "ε/(u·range)",
    "observed",
    "rounding",
    "units",
    "parameters",
    "bytes",
    "bytes at 0.01",
]
EXPORT_COLUMNS = ["target", "weights", "export", "bytes", "observed difference", "bound (proved)", "observed error"]
Rows = tuple[list[str], list[list[str]]]


def certified(target: Named, chosen: dict[str, Any], seconds: float) -> tuple[Approximation, ...]:
    """(the layer for 1e-2, the one with the smallest bound), halving the tolerance as long as bounds become smaller."""
    layers = list[Approximation]()
    for tolerance in STEPS:
        try:
            found = ol.build(target.target, tolerance=tolerance, seconds=seconds, **chosen)
        except ol.InputError:  # no float32 number is that close to f
            break
        bound = found.certificate.bound
        if math.isfinite(bound) and (not layers or bound < layers[-1].certificate.bound):
            layers.append(found)
        if found.certificate.verdict != "CERTIFIED":
            break
    return (layers[0], layers[-1]) if layers else ()


def kept(target: Named, name: str, seconds: float, folder: Path | None) -> tuple[Approximation, ...]:
    """The layers of one row, from their folders if they are there."""
    if folder is None:
        return certified(target, FORMATS[name], seconds)
    first, best = (folder / f"{target.name}-{name}-{which}" for which in ("first", "best"))
    if best.exists():
        return ol.load(first), ol.load(best)
    found = certified(target, FORMATS[name], seconds)
    for layer, place in zip(found, (first, best), strict=False):
        layer.save(place, overwrite=True)
    return found


def row(target: Named, name: str, layers: tuple[Approximation, ...]) -> list[str]:
    if not layers:
        return [target.title, name, "none", *[""] * (len(COLUMNS) - 3)]
    first, best = layers[0], layers[-1]
    c, rounding = best.certificate, best.certificate.evidence.rounding
    values = target.target(best.domain.points(np.random.default_rng(0).random((POINTS, best.domain.dimension))))
    unit = FLOAT32.u * float(np.ptp(values, axis=0).max())
    numbers = [at_most(c.bound, 2), f"{c.bound / unit:.0f}", at_least(c.observed, 2)]
    numbers.append("–" if rounding is None else f"{rounding:.1e}")
    kind = "gates" if best.facts.construction == "gates" else "tokens"
    sizes = [f"{best.units} {kind}", *(f"{n:,}" for n in (best.parameters, best.bytes, first.bytes))]
    return [target.title, name, *numbers, *sizes]


def exported(title: str, name: str, best: Approximation) -> list[list[str]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, way in enumerate(EXPORTS):
            seen = ol.export(best, Path(folder) / str(i), points=POINTS, **way)
            bound = "–" if seen.bound is None or seen.to == "torch" else at_most(seen.bound, 2)
            difference = "–" if seen.difference is None else at_least(seen.difference, 2)
            error = "–" if seen.error is None else at_least(seen.error, 2)
            found.append([title, name, seen.to, f"{seen.size:,}", difference, bound, error])
    return found


def measured(target: Named, name: str, seconds: float, folder: Path | None) -> Rows:
    """The rows of one target in one format."""
    layers = kept(target, name, seconds, folder)
    found = row(target, name, layers), exported(target.title, name, layers[-1]) if layers else []
    print(*found[0], *map(str, found[1]), sep="  ", flush=True)
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into formats.md")
    parser.add_argument("--layers", type=Path, help="folder for the layers; those that are there are not built again")
    parser.add_argument("--targets", nargs="*", help="names of targets; all in up to two variables by default")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=FORMATS, help="some formats only")
    parser.add_argument("--jobs", type=int, default=1, help="builds at a time")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one build")
    args = parser.parse_args()
    few = [target for target in TARGETS if len(target.domain) <= MOST_VARIABLES]
    chosen = [*map(named, args.targets)] if args.targets else few
    work = [delayed(measured)(target, name, args.seconds, args.layers) for target in chosen for name in args.formats]
    found: list[Rows] = Parallel(n_jobs=args.jobs)(work)
    cells, files = [cell for cell, _ in found], [line for _, lines in found for line in lines]
    print(markdown(COLUMNS, cells), markdown(EXPORT_COLUMNS, files), sep="\n\n")
    if args.page:
        page = page_of("formats.md")
        text = placed(page.read_text(), "formats", markdown(COLUMNS, cells))
        page.write_text(placed(text, "format-exports", markdown(EXPORT_COLUMNS, files)))


if __name__ == "__main__":
    main()
