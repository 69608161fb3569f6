"""The small pictures of the functions in docs/start/formulas.md: `python benchmarks/draw/curves.py`, or `make figures`.

    python benchmarks/draw/curves.py                 all of them into docs/figures/functions (seconds; needs no browser)
    python benchmarks/draw/curves.py --only j0 sin   some

Curves are values of `onelayer.formula.evaluate`, broken where they jump. Neither background nor text: they are read on white and
on black.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from onelayer.common.atomic import write_file
from onelayer.common.errors import InputError
from onelayer.formula import evaluate, parse

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))

from function_table import ROWS, Shown

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures" / "functions"
WIDTH, HEIGHT, EDGE = 120, 60, 4  # pixels
POINTS = 1600  # even: 0 is none of them in a window around it
JUMP = 3.0  # pixels between neighbours, from which a jump is looked for
HALVINGS = 40
APART = 0.08  # pixels by which a polygon may miss the points
BEYOND = 30  # pixels outside the picture, to which values are cut
STRENGTHS = {1: (1.0,), 3: (0.45, 0.7, 1.0)}  # of the curves

Curve = Callable[[np.ndarray], np.ndarray]


def picture(row: Shown) -> str:
    """The picture of a function as SVG."""
    curves = [_values(formula) for formula in row.curves]
    (left, right), (bottom, top) = row.window, row.heights or _heights(curves, row.window)
    across = (WIDTH - 2 * EDGE) / (right - left)
    up = (HEIGHT - 2 * EDGE) / (top - bottom)

    def high(y: np.ndarray) -> np.ndarray:
        return np.clip(HEIGHT - EDGE - (y - bottom) * up, -BEYOND, HEIGHT + BEYOND)

    lines = []
    if bottom <= 0 <= top:
        lines.append(f"M0 {_px(float(high(np.zeros(1))[0]))}H{WIDTH}")
    if left <= 0 <= right:
        lines.append(f"M{_px(EDGE - left * across)} 0V{HEIGHT}")
    parts = [f'<path d="{"".join(lines)}" stroke="#8a8f98" stroke-width="0.7"/>'] if lines else []
    for curve, strength in zip(curves, STRENGTHS[len(curves)], strict=True):
        pieces = _pieces(lambda x, f=curve: high(f(x)), row.window, across)  # type: ignore[misc]
        d = "".join(_polygon(EDGE + (x - left) * across, y) for x, y in pieces)
        weak = f' opacity="{strength:g}"' if strength < 1 else ""
        parts.append(f'<path d="{d}" stroke="#2f7bd0" stroke-width="1.5" stroke-linejoin="round"{weak}/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" fill="none">'
        + "".join(parts)
        + "</svg>\n"
    )


def _values(formula: str) -> Curve:
    found = parse(formula, ("x",))
    return lambda x: evaluate(found, x[:, None])[:, 0]


def _heights(curves: Sequence[Curve], window: tuple[float, float]) -> tuple[float, float]:
    """From the smallest to the largest value, with 0 among them."""
    y = np.concatenate([curve(np.linspace(*window, POINTS)) for curve in curves])
    y = y[np.isfinite(y)]
    return min(0.0, float(y.min())), max(0.0, float(y.max()))


def _pieces(curve: Curve, window: tuple[float, float], across: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The curve between its jumps and where it has values."""
    x = np.linspace(*window, POINTS)
    y = curve(x)
    gap = np.abs(np.diff(y)) > JUMP
    breaks = {int(i) + 1 for i in np.flatnonzero(gap) if _jumps(curve, x[i], x[i + 1])}
    breaks |= {int(i) + 1 for i in np.flatnonzero(np.isnan(y[1:]) != np.isnan(y[:-1]))}
    return [
        (part, height)
        for part, height in zip(np.split(x, sorted(breaks)), np.split(y, sorted(breaks)), strict=True)
        if len(part) > 1 and not np.isnan(height).any()
    ]


def _jumps(curve: Curve, a: float, b: float) -> bool:
    """Whether neighbours stay apart, however close."""
    ya, yb = curve(np.array([a, b]))
    for _ in range(HALVINGS):
        middle = (a + b) / 2
        y = curve(np.array([middle]))[0]
        if np.isnan(y):
            return True
        if abs(y - ya) > abs(yb - y):
            b, yb = middle, y
        else:
            a, ya = middle, y
    return bool(abs(yb - ya) > JUMP)


def _polygon(x: np.ndarray, y: np.ndarray) -> str:
    """A path through as few of the points as come close to all of them (Douglas and Peucker)."""
    kept, parts = {0, len(x) - 1}, [(0, len(x) - 1)]
    while parts:
        i, j = parts.pop()
        if j - i < 2:
            continue
        dx, dy = x[j] - x[i], y[j] - y[i]
        off = np.abs((x[i + 1 : j] - x[i]) * dy - (y[i + 1 : j] - y[i]) * dx) / max(np.hypot(dx, dy), 1e-12)
        k = int(off.argmax()) + i + 1
        if off[k - i - 1] > APART:
            kept.add(k)
            parts += [(i, k), (k, j)]
    return "M" + "L".join(f"{_px(x[k])} {_px(y[k])}" for k in sorted(kept))


def _px(value: float) -> str:
    """To a tenth of a pixel."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[row.name for row in ROWS], default=[])
    args = parser.parse_args(given)
    size = 0
    for row in ROWS:
        if args.only and row.name not in args.only:
            continue
        try:
            drawn = picture(row)
        except InputError as refusal:
            print(f"{row.name} skipped: {refusal.found}")
            continue
        write_file(FOLDER / f"{row.name}.svg", drawn)
        size += len(drawn)
    print(f"{FOLDER}: {size:,} bytes")


if __name__ == "__main__":
    main()
