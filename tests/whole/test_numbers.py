"""Every place that writes a number of a certificate, read back: bounds are rounded up, observed errors down, all else is exact.

The certificates here hold awkward numbers, of which rounding to the nearest makes false statements with 2, 3, 4 and 6 digits.
"""

import itertools
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onelayer as ol
from checking import check
from onelayer.apps.cli import main
from onelayer.apps.web.job import view
from onelayer.common.errors import InputError
from onelayer.common.numbers import at_least, at_most, exact, point
from onelayer.deployment.export import Exported
from onelayer.experiments.compare import Comparison, Entrant
from onelayer.experiments.study.result import Study
from onelayer.experiments.study.summary import TableSpec
from onelayer.experiments.study.sweep import FigureSpec, Sweep
from onelayer.model.history import History, Moment
from onelayer.proof.certificate import Box, Evidence, RelativeTolerance
from onelayer.target.modulus import Modulus
from onelayer.training.distill.fidelity import Fidelity
from onelayer.training.distill.result import Distillation
from onelayer.views import certificate_text
from onelayer.views.comparison import comparison_figure
from onelayer.views.paper_figures import attention_flow
from onelayer.views.report import page
from onelayer.views.study_page import study_figure, study_page
from onelayer.views.terminal import summary, tables
from reading import Truth, words_of

TOLERANCE, BOUND, ROLLOVER = 7.123456789e-05, 6.432144e-05, 9.9995049e-06
OBSERVED, LARGER = 2.1976887e-06, 8.7123424e-05
MARGIN, WITNESS, LIPSCHITZ = 0.12345644, 31.234567890123458, 1.23456789
SHARE, LEAST = 0.02234567891, 0.0031879996
LOW, HIGH = -57.12345678901234, 83.98765432109876
NODE = shutil.which("node")


@pytest.fixture(scope="module")
def layer():
    approx = ol.build("sin(x1/40)", [(LOW, HIGH)], 1e-2)
    assert approx.certificate.verdict == "CERTIFIED"
    return approx


@pytest.fixture(scope="module")
def square():
    return ol.build("sin(x1/40)*x2", [(LOW, HIGH), (0, 1)], 1e-2)


def certified(approx, **more):
    about = {"tolerance": TOLERANCE, "bound": BOUND, "observed": OBSERVED, "lower": 0.0, "lower_point": None}
    return replace(approx.certificate, **about, **more)


def claims(approx):
    """(name, certificate, the truth, the names that its views must contain)."""
    ends = {"low": LOW, "high": HIGH}
    usual = Truth({"bound": BOUND}, {"observed": OBSERVED}, {"tolerance": TOLERANCE, **ends})
    yield "certified", certified(approx), usual, {"bound", "observed", "tolerance"}
    rolled = replace(certified(approx), bound=ROLLOVER)
    yield "rollover", rolled, replace(usual, upper={"bound": ROLLOVER}), {"bound", "observed", "tolerance"}
    close = replace(certified(approx), tolerance=math.nextafter(BOUND, 1))
    limit = {"bound": BOUND, "tolerance": BOUND}  # printed bounds are no larger than a tolerance that is kept
    yield "close", close, Truth(lower={"observed": OBSERVED}, upper=limit), {"bound", "observed"}
    apart = replace(usual, exact={**usual.exact, "margin": MARGIN})
    yield "margin", certified(approx, margin=MARGIN), apart, {"bound", "margin"}
    evidence = Evidence(relative=RelativeTolerance(SHARE, LEAST, "declared"), rounding=3.4567894e-07, left=3)
    evidence |= Evidence(worst_boxes=(Box((0,), (LOW,), (WITNESS,)),), terms={"a priori": 4.3212344e-06})
    assumed = f"the modulus of continuity as declared ({Modulus('declared', (LIPSCHITZ,))})"
    more = {"share": SHARE, "lipschitz": LIPSCHITZ, "witness": WITNESS}
    deep = Truth(
        {"bound": BOUND, "rounding": 3.4567894e-07, "term": 4.3212344e-06}, {**usual.lower, "least": LEAST}, more
    )
    yield "relative", certified(approx, evidence=evidence, assumptions=(assumed,)), deep, {"bound"}
    refuted = replace(certified(approx), bound=math.inf, observed=LARGER, witness=(WITNESS,))
    truth = Truth({}, {"observed": LARGER}, {"tolerance": TOLERANCE, "witness": WITNESS})
    yield "refuted", refuted, truth, {"observed", "tolerance"}
    undecided = replace(certified(approx), bound=LARGER)
    yield "undecided", undecided, replace(usual, upper={"bound": LARGER}), {"bound", "observed", "tolerance"}


def without_size(text):
    """A report without the plan of another layer, whose bound is about the tolerance too."""
    return re.sub(r'<section id="size">.*?</section>', "", text, flags=re.DOTALL)


def in_python(approx):
    """(where, text) of all that Python shows of an approximation."""
    c, shown = approx.certificate, view(approx)
    yield "approximation", f"{approx}{approx._repr_html_()}"
    yield "certificate", f"{c}{c._repr_html_()}"
    yield "statement", certificate_text.statement(approx)
    yield "sentences", certificate_text.band(approx) + certificate_text.observation(approx)
    yield "evidence", str(certificate_text.evidence_table(c))
    yield "report", without_size(page(approx))
    yield "terminal", summary(approx)
    yield "papers", "".join(t.markdown() + t.latex() for t in tables(approx))
    yield "overview", words_of(approx.plot("overview"))
    yield "error", words_of(approx.plot("error"))
    yield "explorer", json.dumps({name: shown[name] for name in shown if name != "data"}, ensure_ascii=False)


def on_the_command_line(approx, folder, capsys):
    place = str(approx.save(folder))
    middle = [str((a + b) / 2) for a, b in zip(approx.domain.lower, approx.domain.upper, strict=True)]
    commands = {"inspect": ["inspect", place], "markdown": ["inspect", place, "--format", "markdown"]}
    commands |= {"inspect --json": ["inspect", place, "--json"], "eval --json": ["eval", place, *middle, "--json"]}
    for to in ("c", "onnx", "torch"):
        commands[f"export {to}"] = ["export", place, "--to", to, "--out", str(folder / f"exported-{to}")]
        commands[f"export {to} --json"] = [*commands[f"export {to}"][:-1], str(folder / f"again-{to}"), "--json"]
    for name, command in commands.items():
        main(command)
        yield name, capsys.readouterr().out.replace(str(folder), "")  # the numbers of a path say nothing
    yield "certificate.json", (folder / "certificate.json").read_text()
    yield "C header", (folder / "exported-c").read_text().partition("*/")[0]
    import onnx
    from safetensors import safe_open

    yield "ONNX metadata", str(onnx.load(folder / "exported-onnx").metadata_props)
    with safe_open(folder / "exported-torch" / "model.safetensors", "pt") as file:
        yield "torch metadata", "\n".join(f"{k}: {v}" for k, v in file.metadata().items())


@pytest.mark.long
@pytest.mark.usefixtures("as_user")
def test_every_number_of_a_certificate_reads_back(layer, square, tmp_path, capsys):
    seen = {}
    for name, certificate, truth, needed in claims(layer):
        approx = replace(layer, certificate=certificate)
        places = dict(in_python(approx)) | dict(on_the_command_line(approx, tmp_path / name, capsys))
        seen[name] = {place: truth.read(text) for place, text in places.items()}
        for place in ("approximation", "report", "terminal", "inspect --json"):
            assert needed <= seen[name][place], f"{name}: not all of {needed} in {place}"
    wide = replace(square, certificate=certified(square))
    assert Truth({"bound": BOUND}).read(words_of(wide.plot("overview"))) == {"bound"}
    for name, place, number in [
        ("certified", "explorer", "bound"),
        ("certified", "error", "bound"),
        ("certified", "statement", "low"),
        ("certified", "eval --json", "bound"),
        ("certified", "C header", "tolerance"),
        ("certified", "C header", "bound"),
        ("certified", "ONNX metadata", "tolerance"),
        ("certified", "torch metadata", "bound"),
        ("certified", "export c", "tolerance"),
        ("margin", "statement", "margin"),
        ("margin", "certificate", "margin"),
        ("margin", "certificate.json", "margin"),
        ("relative", "statement", "least"),
        ("relative", "statement", "share"),
        ("relative", "certificate", "share"),
        ("relative", "evidence", "rounding"),
        ("relative", "evidence", "term"),
        ("relative", "evidence", "witness"),
        ("relative", "report", "lipschitz"),
        ("refuted", "statement", "witness"),
        ("refuted", "certificate", "witness"),
        ("refuted", "explorer", "witness"),
    ]:
        assert number in seen[name][place], f"no {number} in {place} of {name}"


def test_a_printed_bound_keeps_the_tolerance_that_the_bound_keeps(layer):
    for bound, tolerance in [(0.01, 0.01), (0.0123456788, 0.0123456789), (0.99996, 0.999961), (1 / 3, 1 / 3)]:
        certificate = replace(layer.certificate, bound=bound, tolerance=tolerance)
        assert certificate.verdict == "CERTIFIED"
        assert bound <= float(certificate.bound_text) <= tolerance
        assert certificate.tolerance_text == exact(tolerance)


def test_the_rule_itself():
    rng = np.random.default_rng(0)
    for value in [0.01, 0.3, 0.99995, 1e22, 5e-324, *(10 ** rng.uniform(-12, 6, 500)).tolist()]:
        for digits in (1, 2, 4, 6):
            low, high = at_least(value, digits), at_most(value, digits)
            assert float(low) <= value <= float(high)
            assert float(high) - float(low) <= 1.001 * value * 10.0 ** (1 - digits) or value < 1e-320
        assert float(exact(value)) == value
    assert (at_most(0.01), at_least(0.3), at_most(0.99995), at_least(0.99995)) == ("0.01", "0.3", "1", "0.9999")
    assert point([0.1, 2.0, WITNESS]) == "(0.1, 2, 31.234567890123458)"


@pytest.mark.usefixtures("as_user")
def test_a_refuted_witness_read_from_the_report_is_a_witness():
    edge = 0.8123456789012345
    approx = ol.build("sin(40*x1)", [(0.0312345678912345, edge)], 1.23456789e-6, units=2, method="solved")
    for text in (certificate_text.statement(approx), str(approx.certificate), page(approx)):
        found = re.search(r"(?:at x = \(|witness\s+|witness</td><td>)([-\d.e]+)", text)
        x = float(found[1])
        assert (x,) == approx.certificate.witness
        assert approx.domain.contains(np.array([[x]]))[0]
        assert abs(approx([x]) - math.sin(40 * x)) > approx.certificate.tolerance


@pytest.mark.usefixtures("as_user")
def test_build_certify_check_and_plan_on_the_command_line(tmp_path, capsys):
    place, tolerance = tmp_path / "jump", 0.0123456789
    formula = ["where(x1 < 0.3, 0, x1)", "--domain", "0:1", "--eps", str(tolerance)]
    build = ["build", *formula, "--margin", str(MARGIN), "--out", str(place), "--no-report"]
    commands = {"build": build, "certify": ["certify", str(place)], "certify --json": ["certify", str(place), "--json"]}
    commands |= {"check": ["check", str(place)]}
    said = {}
    for name, command in commands.items():
        assert main(command) == 0
        said[name] = capsys.readouterr().out
    c = json.loads((place / "certificate.json").read_text())
    truth = Truth({"bound": c["bound"]}, {"observed": c["observed"]}, {"tolerance": tolerance, "margin": MARGIN})
    found = {name: truth.read(text) for name, text in said.items()}
    assert found["build"] >= {"bound", "observed", "tolerance"}
    assert found["certify"] >= {"observed", "tolerance", "margin"}
    assert {"bound", "tolerance"} <= found["check"]
    for more in ([], ["--method", "polished"], ["--json"]):
        main(["plan", "sin(x1)", "--domain", "0:1", "--eps", str(tolerance), *more])
        text = capsys.readouterr().out
        assert not [n for n in re.findall(r"0\.0123\d*", text) if float(n) > tolerance]
        assert "0.0123456789" in text


@pytest.mark.usefixtures("as_user")
def test_a_plan_shows_no_estimate_above_the_tolerance(capsys):
    main(["plan", "sin(x1)", "--domain", "0:1", "--eps", "0.01"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("solved", "polished"))]
    assert [row[6:] for row in rows] == [["0.01", "estimate,", "aimed", "at"]] * 2


NAMES = "bound|tolerance|margin|observed|witness|lipschitz|evaluation_error|least|share|difference"
# scripts that round to the nearest: numbers as such, and what a page computes at a point (weights, probabilities, values)
MAY_ROUND = (
    "numbers.js",
    "form.js",
    "here.js",
    "picture.js",
    "sequence_text.js",
    "sequence_view.js",
    "story_layers.js",  # bounds go through roundedUp first
    "story_plot.js",
    "story_proved.js",
    "typing.js",
    "walk_steps.js",
)
ROUNDED = re.compile(r"\{[^{}]*\b(" + NAMES + r")\b[^{}:]*:[^{}\s]*[gefG]\}")


def test_no_source_rounds_such_a_number_to_the_nearest():
    source = Path(ol.__file__).parent
    files = [path for path in source.rglob("*") if path.suffix in (".py", ".js") and path.name != "plotly.min.js"]
    assert len(files) > 300
    for path in files:
        text = path.read_text()
        assert not ROUNDED.search(text), f"{path.name}: {ROUNDED.search(text)[0]}"
        assert path.name in MAY_ROUND or not re.search(r"toPrecision|toExponential", text), path.name
    assert ROUNDED.search('f"{c.tolerance:.4g}"')
    assert ROUNDED.search("f'{self.margin:g}'")


# -- what no certificate of a layer holds -------------------------------------------------------------------------------


def test_comparisons_round_as_certificates_do():
    entrants = (Entrant("a", "constructed", 9, 1.0, OBSERVED, 1e-9, BOUND), Entrant("b", "peer", 9, 1.0, LARGER))
    found = Comparison("f", "x1 in [0, 1]", TOLERANCE, entrants)
    truth = Truth({"bound": BOUND}, {"observed": OBSERVED, "larger": LARGER}, {"tolerance": TOLERANCE})
    for text in (str(found), found._repr_html_(), words_of(comparison_figure(found))):
        assert truth.read(text) == {"bound", "larger", "tolerance"}
        assert at_least(OBSERVED, 2) == "2.1e-06"
        assert "2.1e-06" in text


def test_studies_round_as_certificates_do():
    sweep = Sweep.of_axes("construct", {"target": ["sin-sum", "bump-1"], "tolerance": [TOLERANCE, LARGER]})
    spec = TableSpec(("target", "tolerance"), ("bound", "observed"), title="all")
    figure = FigureSpec(x="units", y=("bound",), by=("tolerance",))
    results = {"bound": BOUND, "observed": OBSERVED, "units": 3, "dimension": 1, "total": 5.0}
    rows = tuple(
        {**task.point, **results, "bound": BOUND if i else ROLLOVER, "observed": OBSERVED if i else 1e-9,
         "measure": "construct", "status": "done", "error": "", "spent": 1.0}
        for i, task in enumerate(sweep.tasks)
    )  # fmt: skip
    study = Study(replace(sweep, tables=(spec,), figures=(figure,)), rows)
    truth = Truth({"bound": BOUND, "rollover": ROLLOVER}, {"observed": OBSERVED})
    truth.exact = {"tolerance": TOLERANCE, "larger": LARGER}
    for text in (str(study), study._repr_html_(), *map(str, study.tables()), study_page(study)):
        assert truth.read(text) == {"bound", "rollover", "observed", "tolerance", "larger"}
    assert truth.read(words_of(study_figure(study, figure))) == {"tolerance", "larger"}


def test_trainings_distillations_and_exports_round_as_certificates_do(layer, tmp_path):
    history = History((Moment(5, 1.0, OBSERVED, 1.0, 0.1),), 5)
    assert Truth(lower={"observed": OBSERVED}).read(str(history)) == {"observed"}
    approx = replace(layer, certificate=certified(layer))
    student = Distillation(approx.model, approx, Fidelity(LARGER, 1.0, 2.0, 1.0, None, 9), (9, 9), 1.0, "how")
    truth = Truth({"bound": BOUND}, {"difference": LARGER}, {"tolerance": TOLERANCE})
    assert truth.read(str(student)) == {"bound", "difference", "tolerance"}
    made = Exported("c", tmp_path, ("a",), "float64", 9, TOLERANCE, 9, OBSERVED, LARGER, BOUND, "of it", BOUND, ())
    truth = Truth({"bound": BOUND}, {"difference": OBSERVED, "error": LARGER}, {"tolerance": TOLERANCE})
    assert truth.read(str(made)) == {"bound", "difference", "error", "tolerance"}


def test_ends_points_and_declared_constants_read_back(layer):
    clip = ol.gallery.clip(2, 0.41234567891, 0.77654321234)
    assert Truth(exact={"low": 0.41234567891, "high": 0.77654321234}).read(str(clip)) == {"low", "high"}
    assert Truth(exact={"x": WITNESS}).read(words_of(attention_flow(layer, [WITNESS]))) == {"x"}
    declared = ol.build(
        lambda x: np.abs(x[:, 0] - 0.4), [(0, 1)], 0.4, lipschitz=LIPSCHITZ, evaluation_error=1.9876543e-3
    )
    truth = Truth(exact={"lipschitz": LIPSCHITZ, "error": 1.9876543e-3})
    for text in (str(declared.certificate), page(declared)):
        assert truth.read(text) == {"lipschitz", "error"}
    derived = ol.Target("sin(1.2345644*x1)", [(0, 1)]).modulus
    assert Truth(upper={"slope": max(derived.lipschitz)}).read(str(derived)) == {"slope"}
    assert max(derived.lipschitz) >= 1.2345644
    samples = np.array([[0.0], [1.0]]), np.array([0.0, 7.654321234])
    with pytest.raises(InputError) as refusal:
        ol.build(samples, tolerance=0.1, lipschitz=LIPSCHITZ)
    told = Truth(exact={"lipschitz": LIPSCHITZ, "apart": 7.654321234}).read(str(refusal.value))
    assert told == {"lipschitz", "apart"}


# -- the checker ----------------------------------------------------------------------------------------------------------


def test_the_checker_rounds_as_certificates_do(tmp_path):
    approx = ol.build("sin(2*x1)", [(0, 1)], 1e-2)
    c = approx.certificate
    close = math.nextafter(c.bound, 1)
    found = check(replace(approx, certificate=replace(c, tolerance=close)).save(tmp_path / "close"))
    assert found.verdict == "VALID"
    low, high = re.search(r"≤ (\S+) ≤ (\S+) ", str(found)).groups()
    assert c.bound <= float(low) <= float(high) == close
    claimed = math.nextafter(c.observed, 0) * 0.98765432123
    tampered = replace(c, bound=claimed, observed=0.0, lower=0.0, lower_point=None)
    found = check(replace(approx, certificate=tampered).save(tmp_path / "tampered"))
    assert found.verdict == "INVALID"
    proved, above = re.search(r"≥ (\S+) is above the claimed (\S+) ", str(found)).groups()
    assert float(above) == claimed < float(proved) <= c.bound
    rough = ol.build("sin(40*x1)", [(0, 1)], 1.23456789e-6, units=2, method="solved")
    found = check(rough.save(tmp_path / "rough"))
    assert found.verdict == "VALID"
    tolerance, x = re.search(r"> (\S+) at \[(\S+)\]", str(found)).groups()
    assert (float(tolerance), (float(x),)) == (1.23456789e-6, rough.certificate.witness)


# -- numbers that nobody asked for, or that are not known ------------------------------------------------------------------


def test_what_is_not_known_is_not_zero():
    trained = ol.train("sin(3*x1)", [(0, 1)], heads=2, width=8, d_model=8, steps=20)
    sort, clip = ol.gallery.sort(3, tolerance=1e-3), ol.gallery.clip(2)
    for approx in (trained, clip):
        assert not re.search(r"Σ\|c\||amplitude|largest score", str(approx) + page(approx))
        assert (approx.facts.total, approx.facts.amplitude, approx.facts.largest_score) == (None, None, None)
    assert re.search(r"^Σ\|c\| +7$", str(sort), re.MULTILINE)
    assert "amplitude" not in str(sort)


def test_a_tolerance_that_nobody_asked_for_is_not_shown():
    x, y = np.linspace(0, 1, 7)[:, None], np.sin(np.arange(7.0))
    free, asked = ol.memorize(x, y), ol.memorize(x, y, tolerance=1.23456789e-3)
    labelled = ol.memorize(x, np.arange(7) % 2)
    for approx in (free, labelled, ol.gallery.clip(2)):
        assert "asked for</span>" not in page(approx)
    assert re.search(r"tolerance +none asked for", str(free))
    assert "<b>0.00123456789</b>" in page(asked)
    assert "tolerance asked for" in page(ol.build("x1**2", [(0, 1)], 0.1))


@pytest.mark.long
def test_the_best_step_is_among_the_steps_made(monkeypatch):
    from onelayer.common.budget import Budget

    options = {"heads": 2, "width": 8, "d_model": 8, "steps": 1000}
    for seconds in (325.0, 130.0, 90.0):
        clock = itertools.count(1)  # every step takes a second
        monkeypatch.setattr(Budget, "over", lambda self, clock=clock: next(clock) >= self.seconds)
        history = ol.train("sin(3*x1)", [(0, 1)], seconds=seconds, **options).history
        assert history.stopped == "time is up"
        assert history.best <= history.steps
        assert history.best in [moment.step for moment in history.moments]
        assert history.steps == int(seconds)
