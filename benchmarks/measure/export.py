"""Exported layers at 100,000 random points: the largest error against f, and the largest difference from our own layer.

`--page` writes the table into export.md.
"""

import tempfile
from pathlib import Path

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.numbers import at_most
from page import markdown, options, page_of, placed
from targets import FRANKE

PAGE = page_of("export.md")
POINTS = 100_000
SINES = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
WAYS: list[dict[str, str]] = [
    {"to": "onnx"},
    {"to": "torch", "norm": "post"},
    {"to": "torch", "norm": "pre"},
    {"to": "c"},
]


def layers() -> dict[str, Approximation]:
    """Gates, memory tokens, smooth maxima, and a trained layer."""
    return {
        "sin x1 + sin x2 within 1e-6": ol.build(*SINES, 1e-6),
        "sin x1 + sin x2 within 5e-4, float32": ol.build(*SINES, 5e-4, dtype="float32"),
        "Franke within 1e-3": ol.build(FRANKE, [(0, 1)] * 2, 1e-3),
        "sort(5) within 1e-6": ol.gallery.sort(5),
        "sin x1 + sin x2, trained, SiLU": ol.train(*SINES, width=64, activation="silu", dtype="float64", steps=500),
    }


def rows(name: str, layer: Approximation, folder: Path) -> list[list[str]]:
    found = []
    for way in WAYS:
        path = folder / f"{len(list(folder.iterdir()))}"
        seen = ol.export(layer, path, points=POINTS, **way)  # type: ignore[arg-type]
        form = seen.to if seen.to != "torch" else f"torch, {way['norm']}-norm"
        bound = "–" if seen.bound is None else at_most(seen.bound)
        error = "–" if seen.error is None else f"{seen.error:.3g}"
        found.append([name, form, seen.dtype, error, f"{seen.difference:.2g}", bound])
        print(*found[-1], sep="  ", flush=True)
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the table into export.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = [row for name, layer in layers().items() for row in rows(name, layer, Path(folder))]
    columns = ["layer", "format", "dtype", "observed error against f", "observed difference", "bound (proved)"]
    table = markdown(columns, cells)
    print(table)
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), "exports", table))


if __name__ == "__main__":
    main()
