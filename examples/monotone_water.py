"""A table that never turns: the density of liquid water as one layer, proved to fall with temperature and to rise with pressure.

    python examples/monotone_water.py [FILE.c]      needs CoolProp: pip install 'onelayer[examples]'

What you learn: a property of the layer is proved without knowing f as a formula. CoolProp is a callable, so how close the layer
is to it is only observed (UNDECIDED). But whoever puts the layer into a controller or a solver may rely on its signs: "decreasing
in T" and "increasing in p" are PROVED for all states at once, which no table of samples can be. Between 0 and 4 °C water
is different: there the same question is REFUTED, with two states that show it. The layer is exported to C with its slopes.
"""

import sys
import tempfile
from pathlib import Path

import onelayer as ol
from water_density import density

STATES = {"T": (280, 350), "p": (1e5, 1e7)}  # K and Pa: liquid, above 4 °C throughout
COLD = {"T": (273.16, 285), "p": (1e5, 1e6)}  # the densest water is in here
TOLERANCE = 0.01  # kg/m³


def main(path: str | None = None) -> int:
    try:
        import CoolProp  # noqa: F401
    except ImportError:
        print("CoolProp is not installed: pip install 'onelayer[examples]'")
        return 2
    water = ol.build(density, STATES, TOLERANCE)
    c = water.certificate
    print(f"{water.units} units, observed error {c.observed:.2g} kg/m³ at {c.observed_points:,} states: {c.verdict}")
    asked = [ol.prove(water, text) for text in ("decreasing in T", "increasing in p")]
    cold = ol.prove(ol.build(density, COLD, TOLERANCE), "decreasing in T")
    for judged in (*asked, cold):
        print(judged)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(path or Path(folder) / "water.c")
        ol.export(water, out, to="c")
        line = next(line for line in out.read_text().splitlines() if "onelayer_gradient is within" in line)
    print("in C:", " ".join(line.split()[1:]))
    return 0 if all(judged.proved for judged in asked) and cold.verdict == "REFUTED" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
