"""A physics formula with a proof: the van der Waals pressure of carbon dioxide, within one part in 100,000.

    python examples/van_der_waals.py

What you learn: variables with names, constants of nature in the text of a formula, a relative tolerance (the smallest
pressure on the whole domain is found with proof), a CERTIFIED layer, and the independent checker, which proves the bound once
more from the stored files, in ball arithmetic and without any of the code that built them.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import onelayer as ol
from onelayer.common.table import Table

# p = R T/(v − b) − a/v², v the molar volume in litres, p in bar: R = 0.08314, a = 3.640, b = 0.04267 for CO2
PRESSURE = "0.08314*T/(v - 0.04267) - 3.640/v**2"
STATES = {"T": (310, 450), "v": (0.5, 2)}
SHARE = 1e-5


def main() -> int:
    approx = ol.build(PRESSURE, STATES, tolerance=SHARE, relative=True)
    c = approx.certificate
    print(c)
    table = Table("Pressure of CO2 in bar", ("T in K", "v in l/mol", "formula", "one layer", "relative difference"))
    for T, v in ((310, 0.5), (310, 2.0), (380, 1.0), (450, 0.5), (450, 2.0)):
        exact, answer = 0.08314 * T / (v - 0.04267) - 3.640 / v**2, float(approx(np.array([T, v])))
        row = (f"{T}", f"{v:g}", f"{exact:.6f}", f"{answer:.6f}", f"{(answer - exact) / exact:.1e}")
        table.rows.append(row)
    print(table)
    with tempfile.TemporaryDirectory() as place:
        verdict = ol.check(approx.save(Path(place) / "pressure"))
    print(
        f"{approx.units} units, {approx.parameters} numbers: {c.verdict} by the prover, {verdict.verdict} by the checker"
    )
    return 0 if c.verdict == "CERTIFIED" and verdict.verdict == "VALID" else 1


if __name__ == "__main__":
    sys.exit(main())
