"""An approximation in a terminal: tables, and small charts made of block characters.

spectra      the singular values of every weight matrix, on a logarithmic scale
positions    how many units switch or sit along every variable
centre       what the heads add to T at the centre of the domain
error        T − f as a strip or a small map, as a share of the bound (of the largest error, if none is proved)
"""

import math

import numpy as np

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.numbers import at_least, exact
from ..common.table import Table
from ..model.inspection import Inspection, inspect
from .head_map import HeadMap, head_map_of
from .scene import scenes

LEVELS = " ▁▂▃▄▅▆▇█"
SHADES = " ░▒▓█"
WIDTH, ROWS = 60, 14  # characters of a chart
MOST_VARIABLES, MOST_BARS = 12, 8
PLAIN = str.maketrans("▁▂▃▄▅▆▇█░▒▓─−≤≥×–", ".:-=+*##.x#--<>x-")  # for terminals without block characters


def summary(approximation: Approximation) -> str:
    """All tables and charts, as text."""
    seen = inspect(approximation.model)
    parts = [str(approximation), str(seen), spectra(seen), positions(approximation, head_map_of(approximation))]
    return "\n".join(part for part in [*parts, centre(approximation), error(approximation)] if part)


def plain(text: str) -> str:
    """The charts in ASCII, where ▒ is x; numbers are unchanged."""
    return text.translate(PLAIN)


def tables(approximation: Approximation) -> tuple[Table, ...]:
    """The tables of the summary, for Markdown and LaTeX."""
    seen = inspect(approximation.model)
    return approximation.table(), approximation.certificate.table(), seen.matrix_table(), seen.head_table()


def spark(values: np.ndarray, largest: float | None = None) -> str:
    """Numbers ≥ 0 as a row of blocks: blank for 0, at least the lowest block for anything above."""
    top = largest or float(values.max(initial=0.0)) or 1.0
    heights = np.ceil(np.clip(values / top, 0, 1) * (len(LEVELS) - 1)).astype(int)
    return "".join(LEVELS[h] for h in heights)


def spectra(found: Inspection) -> str:
    """Singular values of each matrix, over six decades below the largest."""
    lines = []
    for view in found.matrices:
        sigma = view.singular_values[:WIDTH]
        share = 1 + np.log10(np.maximum(sigma / (view.spectral or 1.0), 1e-6)) / 6
        lines.append(f"{view.name:>4} {view.spectral:9.3g} {spark(share, 1.0)}")
    return "Singular values, six decades\n" + "\n".join(lines) + "\n"


def positions(approximation: Approximation, found: HeadMap) -> str:
    """Where units are, variable by variable; empty if that cannot be read from the layer."""
    d = approximation.domain
    lines = []
    for j in range(min(d.dimension, MOST_VARIABLES)):
        at = [g.at[j] for g in found.gates if j in g.at] + [t.at[j] for t in found.tokens]
        if at:
            counts, _ = np.histogram(np.clip(at, d.lower[j], d.upper[j]), bins=WIDTH, range=(d.lower[j], d.upper[j]))
            lines.append(f"{d.names[j]:>4} {exact(d.lower[j]):>8} {spark(counts)} {exact(d.upper[j])}")
    return "Where units switch or sit (the ends include units beyond them)\n" + "\n".join(lines) + "\n" if lines else ""


def centre(approximation: Approximation) -> str:
    """Bars of the largest contributions at the centre; empty if heads do not simply add up."""
    d = approximation.domain
    x = d.points(np.full((1, d.dimension), 0.5))[0]
    x = np.floor(x) if approximation.vocabulary is not None else x
    try:
        found = approximation.explain(x)
    except InputError:
        return ""
    own = found.contributions[:, 0]
    order = np.argsort(-np.abs(own), kind="stable")[:MOST_BARS]
    rows = [(f"{found.kinds[h]} {h + 1}", float(own[h])) for h in order]
    others = float(own.sum() - own[order].sum())
    rows += [(f"{len(own) - len(order)} others", others)] if len(own) > len(order) else []
    rows += [("rest", float(found.rest[0])), ("T(x)", float(found.value[0]))]
    top = max(abs(v) for _, v in rows) or 1.0
    lines = [f"{name:>12} {v:11.4g} {('▇' if v > 0 else '▒') * round(abs(v) / top * 40)}" for name, v in rows]
    return "What heads add at the centre of the domain (▒ is negative)\n" + "\n".join(lines) + "\n"


def error(approximation: Approximation) -> str:
    """|T − f| over one or two variables, the others at the centre; empty if f cannot be evaluated."""
    found = scenes(approximation)
    if not found or found[0].error is None or not np.isfinite(found[0].error).any():
        return ""
    scene, bound, names = found[0], approximation.certificate.bound, approximation.domain.names
    off = np.nan_to_num(np.abs(found[0].error[scene.middle][..., 0]))
    top, of = bound, f"the bound {approximation.certificate.bound_text}"
    if not math.isfinite(bound):
        top = float(off.max()) or 1.0
        of = f"the largest seen, {at_least(top, 3)}"
    if off.ndim == 1:
        strip = np.array([part.max() for part in np.array_split(off, WIDTH)])
        return f"|T − f| along {names[0]}, as a share of {of}\n{spark(strip, top)}\n"
    columns = np.stack([a.max(axis=0) for a in np.array_split(off, min(WIDTH, len(off)))])
    coarse = np.stack([a.max(axis=1) for a in np.array_split(columns, ROWS, axis=1)])[::-1]
    shade = np.ceil(np.clip(coarse / top, 0, 1) * (len(SHADES) - 1)).astype(int)
    title = f"|T − f| over {names[scene.drawn[0]]} (across) and {names[scene.drawn[1]]} (up), as a share of {of}"
    return title + "\n" + "\n".join("".join(SHADES[s] for s in row) for row in shade) + "\n"
