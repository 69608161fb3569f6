"""The smallest tolerance at which float32, bfloat16 and int8 layers are CERTIFIED, per named target; and their exports.

The tolerance is halved from 1e-2 until a build fails: ε is the last one that was certified, with its bound, the error observed
at float32 points, the part of the bound that is rounding, and the size of all stored numbers. The second table is about the
exports of these layers: the largest difference from our own layer at 100,000 random points, and the bound on it where one is
proved. It takes an hour or two. `--page` writes the tables into formats.md, `--targets` takes some targets only.
"""

import tempfile
from pathlib import Path
from typing import Any

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.numbers import at_least, at_most
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
COLUMNS = ["target", "weights", "ε", "bound", "observed", "rounding", "units", "parameters", "bytes"]
EXPORT_COLUMNS = ["target", "weights", "export", "bytes", "observed difference", "bound (proved)", "observed error"]


def smallest(target: Named, chosen: dict[str, Any], seconds: float) -> Approximation | None:
    """The last layer that is certified, from one tolerance to half of it."""
    best = None
    for tolerance in STEPS:
        try:
            found = ol.build(target.target, tolerance=tolerance, seconds=seconds, **chosen)
        except ol.InputError:  # no float32 number is that close to f
            break
        if found.certificate.verdict != "CERTIFIED":
            break
        best = found
    return best


def row(title: str, name: str, best: Approximation | None) -> list[str]:
    if best is None:
        return [title, name, "none", *[""] * (len(COLUMNS) - 3)]
    c, rounding = best.certificate, best.certificate.evidence.rounding
    numbers = [f"{c.tolerance:.2g}", at_most(c.bound, 2), at_least(c.observed, 2)]
    numbers.append("–" if rounding is None else f"{rounding:.1e}")
    kind = "gates" if best.facts.construction == "gates" else "tokens"
    return [title, name, *numbers, f"{best.units} {kind}", f"{best.parameters:,}", f"{best.bytes:,}"]


def exported(title: str, name: str, best: Approximation, folder: Path) -> list[list[str]]:
    found = []
    for i, way in enumerate(EXPORTS):
        seen = ol.export(best, folder / f"{title}-{name}-{i}".replace("/", " "), points=POINTS, **way)
        bound = "–" if seen.bound is None else at_most(seen.bound, 2)
        difference = "–" if seen.difference is None else at_least(seen.difference, 2)
        error = "–" if seen.error is None else at_least(seen.error, 2)
        found.append([title, name, seen.to, f"{seen.size:,}", difference, bound, error])
        print(*found[-1], sep="  ", flush=True)
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into formats.md")
    parser.add_argument("--targets", nargs="*", help="names of targets; all in up to two variables by default")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one build")
    args = parser.parse_args()
    few = [target for target in TARGETS if len(target.domain) <= MOST_VARIABLES]
    cells, files = list[list[str]](), list[list[str]]()
    with tempfile.TemporaryDirectory() as folder:
        for target in map(named, args.targets) if args.targets else few:
            for name, chosen in FORMATS.items():
                best = smallest(target, chosen, args.seconds)
                cells.append(row(target.title, name, best))
                print(*cells[-1], sep="  ", flush=True)
                files += exported(target.title, name, best, Path(folder)) if best is not None else []
    print(markdown(COLUMNS, cells), markdown(EXPORT_COLUMNS, files), sep="\n\n")
    if args.page:
        page = page_of("formats.md")
        text = placed(page.read_text(), "formats", markdown(COLUMNS, cells))
        page.write_text(placed(text, "format-exports", markdown(EXPORT_COLUMNS, files)))


if __name__ == "__main__":
    main()
