"""A table stored in one layer: the boiling points of some liquids, and labels for them, without any training.

    python examples/memory.py

What you learn: any finite table fits into one layer exactly (labels) or up to rounding (numbers), with a proof for each stored
row, and with no claim at all between the rows: this is storage, not learning. Try a point between the rows and see.
"""

import sys

import numpy as np

import onelayer as ol
from onelayer.common.table import Table

# name, molar mass in g/mol, dipole moment in debye, boiling point in °C at 1 atm, whether it mixes with water
LIQUIDS = (
    ("water", 18.02, 1.85, 100.0, "itself"),
    ("methanol", 32.04, 1.70, 64.7, "mixes"),
    ("ethanol", 46.07, 1.69, 78.4, "mixes"),
    ("acetone", 58.08, 2.88, 56.1, "mixes"),
    ("benzene", 78.11, 0.0, 80.1, "separates"),
    ("toluene", 92.14, 0.36, 110.6, "separates"),
    ("hexane", 86.18, 0.08, 68.7, "separates"),
    ("chloroform", 119.38, 1.04, 61.2, "separates"),
)


def main() -> int:
    features = np.array([row[1:3] for row in LIQUIDS], dtype=float)
    boiling = np.array([row[3] for row in LIQUIDS], dtype=float)
    words = np.array([row[4] for row in LIQUIDS])
    numbers, labels = ol.memorize(features, boiling), ol.memorize(features, words)
    table = Table("Stored and recalled", ("liquid", "boils at", "recalled", "with water", "recalled"))
    recalled, answers = numbers(features), labels.answer(features)
    for i, row in enumerate(LIQUIDS):
        table.rows.append((row[0], f"{row[3]:.1f} °C", f"{recalled[i]:.10f}", row[4], str(answers[i])))
    print(table)
    between = (features[0] + features[1]) / 2
    print(
        f"halfway between water and methanol the layer says {numbers(between):.1f} °C: no one claims that it means anything"
    )
    c = numbers.certificate
    print(f"numbers: {c.verdict} within {c.bound:.1e} °C, {c.domain}")
    print(
        f"labels: {labels.certificate.verdict}, scores within {labels.certificate.bound:.1e} of 0 or 1, so none can be wrong"
    )
    return 0 if (answers == words).all() and c.verdict == labels.certificate.verdict == "CERTIFIED" else 1


if __name__ == "__main__":
    sys.exit(main())
