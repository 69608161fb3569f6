"""Newton's method and a minimiser that use a layer instead of f, and say how far they can be from the truth.

    python examples/newton_and_descent.py

What you learn: (1) Kepler's equation is solved by Newton's method on T. |T − f| ≤ ε and |T' − f'| ≤ ε' are proved, and so is
T' ≥ m > ε'. Then f is increasing with slope m − ε' at least, and the root of f is within (|T(x)| + ε)/(m − ε') of any point x at
which the method stops. (2) Branin's function is minimised by L-BFGS on T, with the layer's own slopes. Whatever point it ends
at, T ≥ v − 0.01 is proved on the whole box, v the value there: so f has no value below v − 0.01 − ε anywhere, and one of
at most v + ε. No local minimum can deceive.
"""

import sys

import numpy as np
import torch
from scipy.optimize import minimize

import onelayer as ol

KEPLER, ECCENTRICITY, MEAN = "E - 0.3*sin(E) - 1", 0.3, 1.0
ROOM = 0.01  # below the value that the minimiser ends at; f spans 308
BRANIN = "(y - 5.1/(4*pi^2)*x^2 + 5/pi*x - 6)^2 + 10*(1 - 1/(8*pi))*cos(x) + 10"


def slopes_at(approx: ol.Approximation, x: np.ndarray) -> np.ndarray:
    """∂T/∂x_i at one point, by automatic differentiation."""
    given = torch.tensor(x, dtype=torch.float64).reshape(1, -1).requires_grad_(True)
    return torch.autograd.grad(approx.module()(given).sum(), given)[0][0].numpy()


def newton() -> bool:
    """The root of f from the layer alone, and how far the true root can be."""
    approx = ol.build(KEPLER, {"E": (0, "pi")}, 1e-9, slope_tolerance=1e-6)
    c, least = approx.certificate, approx.slopes()[0].low
    x, steps = np.array([0.5]), 0
    while steps < 20 and abs(value := float(approx(x))) > 1e-12:
        x, steps = x - value / slopes_at(approx, x), steps + 1
    away = (abs(float(approx(x))) + c.bound) / (least - c.slope.bound)
    truth = MEAN
    for _ in range(60):  # the usual fixed point, for comparison
        truth = MEAN + ECCENTRICITY * np.sin(truth)
    print(f"Kepler: {c.verdict}, {approx.units} units; T' ≥ {least:.4f} is proved")
    print(
        f"  E = {x[0]:.12f} after {steps} steps; the root of f is within {away:.1e} (it is {abs(x[0] - truth):.1e} away)"
    )
    return c.verdict == "CERTIFIED" and abs(x[0] - truth) <= away


def descent() -> bool:
    """The smallest value of f on the box, from below and from above."""
    approx = ol.build(BRANIN, {"x": (-5, 10), "y": (0, 15)}, 1e-4)
    c = approx.certificate
    box = list(zip(approx.domain.lower, approx.domain.upper, strict=True))
    found = minimize(
        lambda x: float(approx(x[None])[0]),
        (9.0, 3.0),
        jac=lambda x: slopes_at(approx, x),
        bounds=box,
        method="L-BFGS-B",
    )
    upper, low = found.fun + c.bound, found.fun - ROOM
    proved = ol.prove(approx, f"T >= {low!r}").proved
    print(f"Branin: {c.verdict}, {approx.units} units; the minimiser ends at ({found.x[0]:.4f}, {found.x[1]:.4f})")
    print(f"  {low - c.bound:.4f} ≤ min f ≤ {upper:.4f} on the whole box (it is 0.3979)")
    return c.verdict == "CERTIFIED" and proved and low - c.bound <= 0.397887 <= upper


def main() -> int:
    return 0 if all([newton(), descent()]) else 1


if __name__ == "__main__":
    sys.exit(main())
