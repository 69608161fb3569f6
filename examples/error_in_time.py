"""A layer inside a differential equation: how far can its solution drift from that of f?

    python examples/error_in_time.py [FIGURE.html]

What you learn: if |T − f| ≤ ε is proved and Λ bounds the growth of T, then two solutions of ẋ = f(x) and ẏ = T(y) that start at
the same point satisfy |x(t) − y(t)| ≤ ε(e^{Λt} − 1)/Λ for as long as both stay in the domain (Gronwall). Λ is the logarithmic
norm of the slopes of T in the maximum norm, max_o (∂_o T_o + Σ_{i≠o} |∂_i T_o|), from `approx.slopes()`, which is proved. It can
be negative: then the error stays below ε/|Λ| for ever. Nothing here is fitted to the solutions; the observed distance is drawn
below its bound. The solutions themselves are computed by SciPy to 1e-12, without proof.
"""

import sys

import numpy as np
from scipy.integrate import solve_ivp

import onelayer as ol
from onelayer.common.table import Table

SYSTEMS = {  # name → formula, domain, start, how long, tolerance
    "jet engine": ("-y - 1.5*x**2 - 0.5*x**3 - 0.1; 3*x - y", {"x": (-1, 1), "y": (-1, 1)}, (0.3, 0.2), 1.5, 1e-6),
    "two sines": ("sin(y); -sin(x)", {"x": ("-pi", "pi"), "y": ("-pi", "pi")}, (1.0, 0.5), 4.0, 1e-6),
}
MOMENTS = 200


def growth(approx: ol.Approximation) -> float:
    """Λ: an upper bound on the logarithmic norm of the slopes of T, proved."""
    slopes, D = approx.slopes(), approx.domain.dimension
    rows = [
        slopes[o, o].high + sum(max(abs(slopes[o, i].low), abs(slopes[o, i].high)) for i in range(D) if i != o)
        for o in range(D)
    ]
    return max(rows)


def bound_at(t: np.ndarray, error: float, rate: float) -> np.ndarray:
    """ε(e^{Λt} − 1)/Λ."""
    return error * np.expm1(rate * t) / rate


def distances(approx: ol.Approximation, start: tuple[float, ...], until: float) -> tuple[np.ndarray, np.ndarray]:
    """(moments, observed distance of the two solutions in the maximum norm)."""
    t = np.linspace(0, until, MOMENTS)
    about = {"t_eval": t, "rtol": 1e-12, "atol": 1e-13, "method": "DOP853"}
    exact = solve_ivp(lambda _, x: approx.target(x[None])[0], (0, until), start, **about).y
    layer = solve_ivp(lambda _, x: approx(x[None])[0], (0, until), start, **about).y
    inside = approx.covers(exact.T).all() and approx.covers(layer.T).all()
    if not inside:
        raise SystemExit("a solution leaves the domain: nothing is claimed from there on")
    return t, np.abs(exact - layer).max(axis=0)


def main(figure: str | None = None) -> int:
    table = Table("Error in time", ("system", "units", "ε (proved)", "Λ (proved)", "t", "bound (proved)", "observed"))
    curves, held = {}, True
    for name, (formula, domain, start, until, tolerance) in SYSTEMS.items():
        approx = ol.build(formula, domain, tolerance)
        error, rate = approx.certificate.bound, growth(approx)
        t, seen = distances(approx, start, until)
        bound = bound_at(t, error, rate)
        curves[name] = t, seen, bound
        held &= approx.certificate.verdict == "CERTIFIED" and bool((seen <= bound + 1e-11).all())
        numbers = (f"{error:.2e}", f"{rate:.3f}", f"{until:g}", f"{bound[-1]:.2e}", f"{seen[-1]:.2e}")
        table.rows.append((name, approx.units, *numbers))
    print(table)
    if figure:
        draw(curves, figure)
        print(f"drawn in {figure}")
    print("CERTIFIED, and every observed distance is below its bound" if held else "something does not hold")
    return 0 if held else 1


def draw(curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]], path: str) -> None:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    plot = make_subplots(rows=1, cols=len(curves), subplot_titles=list(curves))
    for column, (t, seen, bound) in enumerate(curves.values(), start=1):
        lines = (("bound (proved)", bound, "#c44e52", "dash"), ("observed distance", seen, "#4c72b0", "solid"))
        for label, values, colour, dash in lines:
            line = {"color": colour, "dash": dash}
            plot.add_trace(go.Scatter(x=t[1:], y=values[1:], name=label, line=line, showlegend=column == 1), 1, column)
    plot.update_yaxes(type="log", exponentformat="power", title_text="|x(t) − y(t)|", col=1)
    plot.update_yaxes(type="log", exponentformat="power")
    plot.update_xaxes(title_text="t")
    plot.update_layout(template="plotly_white", width=1000, height=420, legend={"orientation": "h", "y": -0.25})
    plot.write_html(path)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
