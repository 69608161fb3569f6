"""A surrogate of a property package: the density of liquid water from CoolProp, within a relative tolerance.

    python examples/water_density.py        needs CoolProp: pip install 'onelayer[examples]'

What you learn: a callable becomes a layer; its variables have names and units; the tolerance is relative; and you see what a
certificate is worth when all that is known about f is a Lipschitz constant. CoolProp cannot be read as a formula, so the
constant is *assumed*: the steepest slope found on a grid, times 1.2. With it the coarse layer is CERTIFIED, and the certificate
lists the assumption. The fine layer asks for ten thousand times more than a Lipschitz constant can prove in reasonable time. No
constant is declared for it, and its verdict is an honest UNDECIDED: its error was observed at random states and not proved.
"""

import sys

import numpy as np

import onelayer as ol
from onelayer.common.table import Table

STATES = {"T": (280, 350), "p": (1e5, 1e7)}  # K and Pa: liquid throughout
GRID = 101
SAFETY = 1.2


def density(x: np.ndarray) -> np.ndarray:
    """kg/m³ at states (T, p), one per row."""
    from CoolProp.CoolProp import PropsSI

    return PropsSI("Dmass", "T", x[:, 0], "P", x[:, 1], "Water")


def steepest() -> list[float]:
    """The largest slopes along T and p between neighbours of a grid: seen, not proved."""
    axes = [np.linspace(*ends, GRID) for ends in STATES.values()]
    states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = density(states.reshape(-1, 2)).reshape(GRID, GRID)
    return [float(np.abs(np.diff(values, axis=j)).max() / (axes[j][1] - axes[j][0])) for j in range(2)]


def main() -> int:
    try:
        import CoolProp  # noqa: F401
    except ImportError:
        print("CoolProp is not installed: pip install 'onelayer[examples]'")
        return 2
    slopes = steepest()
    assumed = [SAFETY * slope for slope in slopes]
    print(f"steepest slopes seen: {slopes[0]:.3g} kg/m³/K, {slopes[1]:.3g} kg/m³/Pa; assumed: {SAFETY} times that\n")
    coarse = ol.build(density, STATES, tolerance=1e-3, relative=True, lipschitz=assumed)
    fine = ol.build(density, STATES, tolerance=1e-7, relative=True)
    columns = ("layer", "tolerance / |f|", "kg/m³", "units", "bound (proved)", "observed error", "verdict")
    table = Table("Density of liquid water", columns)
    for name, approx in (("constant assumed", coarse), ("nothing assumed", fine)):
        c = approx.certificate
        bound = f"{c.bound:.3g}" if np.isfinite(c.bound) else "none"
        share = c.evidence.relative.share
        row = (name, f"{share:g}", f"{c.tolerance:.3g}", approx.units, bound, f"{c.observed:.3g}", c.verdict)
        table.rows.append(row)
    print(table)
    for sentence in coarse.certificate.assumptions:
        print("assumes:", sentence)
    state = np.array([300.0, 5e6])
    print(f"\nat 300 K and 50 bar: CoolProp {density(state[None])[0]:.6f}, one layer {fine(state):.6f} kg/m³")
    print(f"{coarse.certificate.verdict} under the assumed constant; the fine layer is {fine.certificate.verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
