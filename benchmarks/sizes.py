"""How large one layer is on named targets, by method: prints the table of the README. `python benchmarks/sizes.py`

Representative layers carry an a-priori bound, solved layers a certificate proved afterwards. The observed error is the
largest on 20,000 fresh random points and the corners, and around the worst of them.
"""

import numpy as np

import onelayer as ol

FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)
GAUSS = "exp(-6.25*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2 + (x4-0.5)**2))"
RUNS = [  # name, formula, domain, tolerance, options
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.5, {"method": "representative"}),
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.1, {"method": "representative"}),
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-4, {}),
    ("Franke", FRANKE, [(0, 1)] * 2, 0.5, {"method": "representative"}),
    ("Franke", FRANKE, [(0, 1)] * 2, 3e-4, {"construction": "gates"}),
    ("Franke", FRANKE, [(0, 1)] * 2, 3e-4, {"construction": "memory"}),
    ("Gauss, 4-D", GAUSS, [(0, 1)] * 4, 3e-3, {"construction": "memory", "units": 700}),
    ("abs(x1 − x2)", "abs(x1 - x2)", [(0, 1)] * 2, 0.05, {}),
    ("abs(x1 − x2)", "abs(x1 - x2)", [(0, 1)] * 2, 1e-5, {"units": 16, "hinges": 6}),
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-3, {"dtype": "float32"}),
    ("Franke", FRANKE, [(0, 1)] * 2, 1e-3, {"dtype": "float32"}),
]


def main() -> None:
    print("| target | tolerance | method | units | parameters | bound (proved) | observed error | Σ\\|c\\| | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, formula, domain, tolerance, options in RUNS:
        a = ol.build(formula, domain, tolerance, **options)
        c, f = a.certificate, a.facts
        bound = f"{c.bound:.3g}" if np.isfinite(c.bound) else "–"
        bound = bound if c.verdict == "CERTIFIED" else f"{bound} ({c.verdict})"
        size = f"{a.units:,} | {a.parameters:,}"
        how = ", ".join([f.method, f.construction, *(f"{n} {k}" for k, n in options.items() if k == "hinges")])
        how += ", float32" if "dtype" in options else ""
        print(f"| {name} | {tolerance:g} | {how} | {size} | {bound} | {c.observed:.2g} | {f.total:.3g}"
              f" | {f.seconds:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
