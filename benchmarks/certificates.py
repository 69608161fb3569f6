"""What the analytic certificate costs, and how close it is. `python benchmarks/certificates.py [name …]`

Solved layers on named targets: boxes, highest degree, seconds of the proof, bound over the largest error observed; and what a
truncation of 1e-12 instead of 1e-6 costs on the very same boxes. Layers are fitted first, which takes longer than proving.
"""

import sys
import time

from sizes import FRANKE, GAUSS

import onelayer as ol
from onelayer.build import frame_of
from onelayer.certify.analytic import Proof, prove
from onelayer.certify.form import form_of
from onelayer.representative import plan_representative, representative_layer
from onelayer.solved import solved_layer
from onelayer.wishes import Wishes

UNIT = [(0, 1)] * 2
DISC = "x1**2 + x2**2 <= 1"
RUNS = [  # name, formula, domain, condition, tolerance, construction, units
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, None, 1e-4, "gates", None),
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, None, 1e-6, "gates", None),
    ("Franke", FRANKE, UNIT, None, 3e-4, "gates", 156),
    ("Franke", FRANKE, UNIT, None, 3e-4, "memory", 256),
    ("exp(-x1)·cos(3·x2)", "exp(-x1)*cos(3*x2)", UNIT, None, 1e-5, "gates", None),
    ("1/(1+x1²+x2²)", "1/(1+x1**2+x2**2)", UNIT, None, 1e-6, "gates", None),
    ("tanh(5·(x1-x2))", "tanh(5*(x1-x2))", UNIT, None, 1e-4, "gates", None),
    ("x1·x2 on the disc", "x1*x2", [(-1, 1)] * 2, DISC, 1e-4, "gates", None),
    ("x1·x2, representative", "x1*x2", UNIT, None, 0.1, "representative", None),
    ("Gauss, 4-D", GAUSS, [(0, 1)] * 4, None, 3e-3, "memory", 683),
]


def main() -> None:
    print("| target | tolerance | units | boxes | degree | seconds | bound | bound/observed | 1e-12 / 1e-6 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, formula, domain, where, tolerance, construction, units in RUNS:
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        target = ol.Target(formula, domain, where=where)
        layer = (
            representative_layer(target, plan_representative(target, tolerance, None, "token"))[0]
            if construction == "representative"
            else solved_layer(target, Wishes(tolerance, construction, units))
        )
        form, frame = form_of(layer), frame_of(target.domain)
        assert form is not None

        def timed(truncation: float | None, tries: int = 1) -> tuple[float, Proof]:
            found = []
            for _ in range(tries):
                started = time.perf_counter()
                proof = prove(form, target, frame, tolerance, truncation=truncation)  # noqa: B023
                found.append((time.perf_counter() - started, proof))
            return min(found, key=lambda entry: entry[0])

        seconds, proof = timed(None)
        again = "–"
        if seconds < 5:
            (rough, first), (close, second) = timed(1e-6, 3), timed(1e-12, 3)
            assert first.evidence["boxes"] == second.evidence["boxes"] or where
            again = f"{close / rough:.2f}"
        boxes, degrees = (" + ".join(map(str, proof.evidence[key])) for key in ("boxes", "degrees"))
        print(f"| {name} | {tolerance:g} | {layer.units:,} | {boxes} | {degrees} | {seconds:.2f} | {proof.bound:.3g} "
              f"| {proof.bound / seen(layer, target):.3f} | {again} |", flush=True)  # fmt: skip


def seen(layer, target) -> float:
    """The largest error observed, as `build` observes it."""
    from onelayer.approximation import Approximation, Facts
    from onelayer.assemble import assemble
    from onelayer.build import observe
    from onelayer.certify.certificate import Certificate
    from onelayer.plan import outputs_of

    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    facts = Facts("", "", "token", (), layer.units, 0.0)
    nothing = Certificate(1.0, float("inf"), float("inf"), 0, "none", "")
    approximation = Approximation(model, target, nothing, facts, target.domain, target.shape, target.output_shape)
    return observe(approximation, 0)[0]


if __name__ == "__main__":
    main()
