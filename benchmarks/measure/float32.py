"""The smallest tolerance at which a float32 model is CERTIFIED, per target: halving from 1e-2 until it fails.

Beside it: the observed error at float32 points, and the part of the bound that is rounding.
"""

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from onelayer.common.table import Table
from page import options
from targets import FRANKE

TARGETS: list[tuple[str, list[tuple[float, float | str]]]] = [
    ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2),
    ("exp(-x1)*cos(3*x2)", [(0, 1)] * 2),
    ("1/(1+x1**2+x2**2)", [(0, 1)] * 2),
    ("1/(1+25*x1**2)", [(-1, 1)]),
    ("x1*x2; x1 - x2**2", [(0, 1)] * 2),
    ("x1*x2*x3", [(0, 1)] * 3),
    (FRANKE, [(0, 1)] * 2),
]
STEPS = [10.0**-2 / 2**i for i in range(12)]


def main() -> None:
    options(__doc__).parse_args()
    table = Table(
        "Smallest certified tolerance in float32", ("target", "ε", "bound", "observed", "rounding", "units", "Σ|c|")
    )
    for formula, domain in TARGETS:
        best = None
        for tolerance in STEPS:
            approx = ol.build(formula, domain, tolerance, dtype="float32")
            if approx.certificate.verdict != "CERTIFIED":
                break
            best = approx
        if best is None:
            table.rows.append((formula[:24], "none", "", "", "", "", ""))
            continue
        c = best.certificate
        numbers = (f"{c.tolerance:.2g}", at_most(c.bound, 2), at_least(c.observed, 2), f"{c.evidence.rounding:.2g}")
        kind = f"{best.units} {best.facts.construction}"
        table.rows.append((formula[:24], *numbers, kind, f"{best.facts.total:.3g}"))
        print(table.rows[-1], flush=True)
    print(table)


if __name__ == "__main__":
    main()
