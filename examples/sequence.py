"""A sequence in, a sequence out: three points of the plane, each moved towards the mean of all three.

    python examples/sequence.py

What you learn: a target of shape (n, d) is a sequence of n vectors of d numbers, as in the paper's theorem; several outputs are
separated by ";" and get a shape as well; outputs can be read at an output token, or at the positions themselves, where the
feed-forward network selects each position's own (`layout="wide"`). Both layers are CERTIFIED, and they answer alike.
"""

import sys

import numpy as np

import onelayer as ol
from onelayer.common.table import Table

N = 3  # points; token i is (x, y) of point i, so the variables are x1, y1, x2, y2, x3, y3 in row order
NAMES = [f"{axis}{i + 1}" for i in range(N) for axis in "xy"]


def attraction() -> str:
    """Point i moves by 0.2·tanh(the vector to the mean of all), coordinate by coordinate: 2N formulas."""
    outputs = []
    for i in range(N):
        for axis in "xy":
            mean = "(" + " + ".join(f"{axis}{j + 1}" for j in range(N)) + f")/{N}"
            outputs.append(f"{axis}{i + 1} + 0.2*tanh({mean} - {axis}{i + 1})")
    return "; ".join(outputs)


def main() -> int:
    box = dict.fromkeys(NAMES, (-1, 1))
    table = Table("One layer for a sequence", ("outputs read at", "heads", "numbers", "bound (proved)", "verdict"))
    layers = {}
    for layout, where in (("token", "an output token"), ("wide", "their own positions")):
        layer = ol.build(
            attraction(), box, tolerance=5e-2, shape=(N, 2), output_shape=(N, 2), layout=layout, method="solved"
        )
        c = layer.certificate
        heads = layer.model.config.heads
        table.rows.append((where, heads, layer.parameters, f"{c.bound:.3g}", c.verdict))
        layers[layout] = layer
    print(table)
    points = np.array([[0.9, 0.8], [-0.5, 0.1], [0.2, -0.9]])
    moved = layers["token"](points)
    print("from", points.tolist())
    print("to  ", np.round(moved, 3).tolist())
    apart = float(np.abs(moved - layers["wide"](points)).max())
    print(f"the two layouts differ by {apart:.1e} here")
    return 0 if all(layer.certificate.verdict == "CERTIFIED" for layer in layers.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
