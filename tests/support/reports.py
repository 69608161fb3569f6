"""Approximations of all kinds, for tests of the report."""

import numpy as np

import onelayer as ol


def cosine(x):
    return np.cos(2 * x[:, 0]) * x[:, 1]


def samples():
    x = np.linspace(0, 1, 60)[:, None]
    return x, np.sin(5 * x[:, 0])


def scattered():
    x = np.random.default_rng(0).uniform(0, 1, (200, 2))
    return x, np.sin(3 * x[:, 0]) * x[:, 1]


def labels():
    x = np.random.default_rng(0).normal(size=(30, 3))
    return x, np.arange(30) % 3


KINDS = {
    "1-D": lambda: ol.build("1/(1 + 25*x1**2)", [(-1, 1)], 1e-3),
    "2-D": lambda: ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-2),
    "memory": lambda: ol.build("exp(-x1**2 - x2**2)", [(-1, 1)] * 2, 1e-2, method="solved", construction="memory"),
    "kink": lambda: ol.build("abs(x1 - x2) + max(x1, 0.3)", [(0, 1)] * 2, 1e-3),
    "3-D": lambda: ol.build("sin(x*y) + z**2", {"x": (0, 1), "y": (0, 2), "z": (-1, 1)}, 1e-2),
    "6-D": lambda: ol.build("+".join(f"sin(x{k})" for k in range(1, 7)), [(0, 1)] * 6, 1e-2),
    "where": lambda: ol.build("exp(x1)*x2", [(-1, 1)] * 2, 1e-1, within="x1**2 + x2**2 <= 1"),
    "sequence": lambda: ol.build("x1*x4; x2 + x3; sin(x1); x4", [(0, 1)] * 4, 1e-2, shape=(2, 2), output_shape=(2, 2)),
    "callable": lambda: ol.build(cosine, [(0, 1)] * 2, 0.5, lipschitz=2.0),
    "data": lambda: ol.build(samples(), tolerance=0.3, lipschitz=5.0),
    "samples": lambda: ol.build(scattered(), tolerance=0.2),
    "gallery": lambda: ol.gallery.sort(4, tolerance=1e-6),
    "tokens": lambda: ol.gallery.histogram(4, 3),
    "memorised": lambda: ol.memorize(*labels()),
    "trained": lambda: ol.train("sin(3*x1)*x2", [(0, 1)] * 2, heads=4, width=16, steps=300),
    "float32": lambda: ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-2, dtype="float32"),
    "refuted": lambda: ol.build("sin(40*x1)", [(0, 1)], 1e-6, units=2, method="solved"),
    "paper": lambda: ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1.5, method="representative"),
}
