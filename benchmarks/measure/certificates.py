"""What certificates cost, and how close they are. `python benchmarks/measure/certificates.py [name …]`

First table: solved layers on named targets; boxes and seconds of the proof, bound over the largest error observed, what a
truncation of 1e-12 instead of 1e-6 costs on the same boxes, and how long the independent checker takes for the folder.
Second table: one task for several verifiers (40 plain gates, sin x1 + sin x2, prove twice the error); ours are measured here,
the others were measured earlier on such a layer. Third table: trained layers. Times are for one thread.
`checker` instead of names: the processor seconds of checker and proof for the layers that `build` finds for the named targets.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from onelayer.construction.representative.layer import plan_representative, representative_layer
from onelayer.construction.request import Request
from onelayer.construction.solved.layer import solved_layer
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.form import form_of
from onelayer.layer.heads import joined, lattice_gates
from onelayer.layer.layer import gate_layer
from onelayer.proof.analytic import prove as analytic
from onelayer.proof.bisection import prove as bisect
from onelayer.proof.claim import Claim
from onelayer.proof.decision import decide
from onelayer.target.points import fitting_points
from page import options
from targets import FRANKE, GAUSS, TARGETS

UNIT = [(0, 1)] * 2
DISC = "x1**2 + x2**2 <= 1"
RUNS = [  # name, formula, domain, condition, tolerance, construction, units
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, None, 1e-4, "gates", None),
    ("sin x1 + sin x2", "sin(x1) + sin(x2)", [(0, "2*pi")] * 2, None, 1e-6, "gates", None),
    ("Franke", FRANKE, UNIT, None, 3e-4, "gates", 156),
    ("Franke", FRANKE, UNIT, None, 2e-3, "memory", 200),
    ("exp(-x1)·cos(3·x2)", "exp(-x1)*cos(3*x2)", UNIT, None, 1e-5, "gates", None),
    ("1/(1+x1²+x2²)", "1/(1+x1**2+x2**2)", UNIT, None, 1e-6, "gates", None),
    ("tanh(5·(x1-x2))", "tanh(5*(x1-x2))", UNIT, None, 1e-4, "gates", None),
    ("x1·x2 on the disc", "x1*x2", [(-1, 1)] * 2, DISC, 1e-4, "gates", None),
    ("x1·x2·x3", "x1*x2*x3", [(0, 1)] * 3, None, 1e-3, "gates", None),
    ("x1·x2, representative", "x1*x2", UNIT, None, 0.1, "representative", None),
    ("Gauss, 4-D", GAUSS, [(0, 1)] * 4, None, 3e-3, "memory", 683),
]
OTHERS = [  # auto_LiRPA is not rounding-rigorous, and misses the exact value on small boxes of a sharp softmax
    ("auto_LiRPA 0.7.1, CROWN-IBP", "45,516–74,996", "16–44"),
    ("codac", "391,000", "139"),
    ("dReal (extrapolated)", "–", "21,000"),
]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("name", nargs="*", help="only targets whose name contains one of these, and no other table")
    named = parser.parse_args().name
    torch.set_num_threads(1)
    if named == ["checker"]:
        return named_targets()
    print("| target | tolerance | units | boxes | degree | s | bound | bound/observed | 1e-12 / 1e-6 | checker, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run in RUNS:
        if not named or any(word in run[0] for word in named):
            print(row(*run), flush=True)
    if not named:
        same_task()
        trained_layers()


def row(name, formula, domain, where, tolerance, construction, units) -> str:
    target = ol.Target(formula, domain, within=where)
    if construction == "representative":
        layer = representative_layer(target, plan_representative(target, tolerance, None, "token"))[0]
    else:
        layer = solved_layer(Request(target, tolerance, construction=construction, units=units))
    form, frame = form_of(layer), frame_of(target.domain)
    seconds, proof = timed(lambda: analytic.prove(form, frame, Claim(target, tolerance)))
    again = "–"
    if seconds < 5:
        rough, close = (
            timed(lambda g=goal: analytic.prove(form, frame, Claim(target, tolerance), truncation=g), 3)
            for goal in (1e-6, 1e-12)
        )
        assert rough[1].evidence.boxes == close[1].evidence.boxes or where
        again = f"{close[0] / rough[0]:.2f}"
    model = assemble(layer, frame, outputs_of(target))
    certificate = decide(model, Claim(target, tolerance, (0,)))
    boxes, degrees = (" + ".join(map(str, t)) for t in (proof.evidence.boxes, proof.evidence.degrees))
    numbers = f"{layer.units:,} | {boxes} | {degrees} | {seconds:.2f} | {at_most(proof.bound, 3)}"
    return (
        f"| {name} | {tolerance:g} | {numbers} | {proof.bound / certificate.observed:.3f} | {again}"
        f" | {checked(model, target, certificate) if target.dimension < 4 else 'beyond its budget'} |"
    )


def timed(call, tries: int = 1, clock=time.perf_counter):
    """(seconds, result) of the quickest of several tries."""
    found = []
    for _ in range(tries):
        started = clock()
        result = call()
        found.append((clock() - started, result))
    return min(found, key=lambda entry: entry[0])


def checked(model, target, certificate) -> str:
    verdict = check(model, target, certificate)
    return f"{verdict.seconds:.1f}, {verdict.boxes:,} boxes" if verdict.verdict == "VALID" else verdict.verdict.lower()


def check(model, target, certificate):
    """The checker's verdict on the saved folder."""
    approx = ol.build(target, tolerance=1.0, units=max(4, 3**target.dimension))  # any layer: its model is replaced
    approx = replace(approx, model=model, certificate=certificate, facts=replace(approx.facts, places=(0,)))
    with tempfile.TemporaryDirectory() as folder:
        approx.save(Path(folder) / "f")
        return ol.check(Path(folder) / "f")


def named_targets() -> None:
    """Checker and proof side by side, one after the other, on the same layers."""
    print(
        "| target | tolerance | proof, s | checker, s | checker/proof | boxes of the checker |\n|---|---|---|---|---|---|"
    )
    for name, target, goal in ((entry.title, entry.target, goal) for entry in TARGETS for goal in entry.goals):
        approx = ol.build(target, tolerance=goal.tolerance)
        proof, _ = timed(lambda a=approx: ol.certify(a), 3, time.process_time)
        with tempfile.TemporaryDirectory() as place:
            folder = approx.save(Path(place) / "f")
            seconds, verdict = timed(lambda f=folder: ol.check(f), 3, time.process_time)
        assert verdict.verdict == "VALID", verdict
        numbers = f"{proof:.2f} | {seconds:.2f} | {seconds / proof:.1f} | {verdict.boxes:,}"
        print(f"| {name} | {goal.tolerance:g} | {numbers} |", flush=True)


def plain_gates(target, each: int):
    """This many gates along each of two coordinates, values on the anchor only, by least squares."""
    gates = joined([lattice_gates([each], [j], 2, 1.0) for j in range(2)])
    unit = fitting_points(4000, 2, 0)
    columns = torch.cat([torch.ones(len(unit), 1), gates.features(unit - 0.5, full=False)], dim=1)
    wanted = torch.from_numpy(target(target.domain.points(unit.numpy())))
    found = torch.linalg.lstsq(columns, wanted, driver="gelsd").solution
    values = torch.zeros(len(gates), 4, 1, dtype=torch.float64)
    values[:, 0] = found[1:]
    return gate_layer(found[0], 2, (gates, values))


def same_task() -> None:
    target = ol.Target("sin(x1) + sin(x2)", [(0, "2*pi")] * 2)
    layer = plain_gates(target, 20)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    certificate = decide(model, Claim(target, 1.0, (0,)))
    goal = 2 * certificate.observed
    print(f"\n40 plain gates, sin x1 + sin x2, observed error {at_least(certificate.observed, 2)}: prove {goal:.2g}\n")
    print("| verifier | boxes | seconds |\n|---|---|---|")
    form, frame = form_of(layer), frame_of(target.domain)
    seconds, proof = timed(lambda: analytic.prove(form, frame, Claim(target, goal)), 3)
    print(f"| onelayer, interpolation | {sum(proof.evidence.boxes)} | {seconds:.2f} |")
    seconds, proof = timed(lambda: bisect.prove(model, Claim(target, goal), goal / 2), 3)
    print(f"| onelayer, bisection | {proof.evidence.boxes:,} | {seconds:.2f} |")
    claim = replace(decide(model, Claim(target, goal, (0,))), bound=goal)
    verdict = check(model, target, claim)
    print(f"| onelayer, independent checker (balls) | {verdict.boxes} | {verdict.seconds:.2f} |")
    for verifier, boxes, taken in OTHERS:
        print(f"| {verifier} | {boxes} | {taken} |")


def trained_layers() -> None:
    target = ol.Target("sin(3*x1)*x2", UNIT)
    print(
        "\nTrained layers, 4 heads, d_model 16, ReLU or GELU width 32, 300 steps of Adam (CROWN on such layers: 3.6–4.7 s)\n"
    )
    print("| norm | activation | boxes | seconds | bound | bound/observed |\n|---|---|---|---|---|---|")
    for norm in ("none", "pre", "post"):
        for activation in ("relu", "gelu"):
            config = ol.LayerConfig(
                tokens=2, features_in=1, features_out=1, d_model=16, heads=4, d_k=4, d_v=4, ffn_width=32,
                activation=activation, norm=norm, readout="mean", code="learned",
            )  # fmt: skip
            model = ol.SingleLayerTransformer(config, seed=1)
            optimiser, generator = torch.optim.Adam(model.parameters(), lr=1e-2), torch.Generator().manual_seed(0)
            for _ in range(300):
                x = torch.rand(128, 2, 1, generator=generator, dtype=torch.float64)
                loss = (model(x)[:, 0, 0] - torch.sin(3 * x[:, 0, 0]) * x[:, 1, 0]).square().mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            model.eval()
            seconds, c = timed(lambda m=model: ol.certify(m, target, 1.0))
            numbers = f"{c.evidence.boxes:,} | {seconds:.2f} | {at_most(c.bound, 3)} | {c.bound / c.observed:.2f}"
            print(f"| {norm} | {activation} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
