"""Coq: what is printed is what was meant; where Coq is here, it accepts what holds and rejects what does not."""

import copy
import re
import shutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.deployment.export import coq
from onelayer.deployment.export.coq import by_kernel
from onelayer.deployment.export.coq.by_kernel import checked
from onelayer.deployment.export.coq.formula import printed
from onelayer.deployment.export.coq.parts import tolerance_of
from onelayer.deployment.export.coq.run import CoqAnswer, run
from onelayer.deployment.export.subject import subject_of
from onelayer.formula import evaluate, parse

proves = [pytest.mark.long, pytest.mark.skipif(shutil.which("coqc") is None, reason="no coqc here")]
FORMULAS = (
    "sin(x1) + cos(2*x1)/3 - tan(x1/4)",
    "1/(1 + 25*x1^2)",
    "exp(-x1)*log(x1 + 2) - sqrt(x1)",
    "x1^(1/2) + x1^(2/3) + x1**-2 + 2**x1",
    "tanh(x1) + sinh(x1) - cosh(x1) + atan(x1)",
    "sigmoid(x1) + expm1(x1) + log1p(x1) + softplus(x1) + sqr(x1)",
    "abs(x1 - x2) + max(x1, x2, 0.25) - min(x1, x2) + hypot(x1, x2)",
    "pi*x1 + e - 0.125 - (-x1)^3",
)


def read_back(text):
    """The text of Coq as a formula of ours: application is the only thing that is written otherwise."""
    names = {"ln": "log", "Rabs": "abs", "PI": "pi"}
    text = re.sub(r"\b(ln|Rabs|PI)\b", lambda found: names[found[0]], text)
    text = re.sub(r"\bexp 1\b", "exp(1)", text)
    while found := re.search(r"\(R(max|min) \(", text):
        first = closing(text, found.end() - 1)
        second = closing(text, first + 2)
        pair = f"({found[1]}({text[found.end() : first]}, {text[first + 3 : second]})"
        text = text[: found.start()] + pair + text[second + 1 :]
    text = re.sub(r"\b(sin|cos|tan|exp|log|sqrt|atan|abs|sinh|cosh|tanh) \(", r"\1(", text)
    return parse(re.sub(r"\(/ ", "(1 / ", text))


def closing(text, start):
    """The bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError(text)


@pytest.mark.parametrize("text", FORMULAS)
def test_the_printed_formula_is_read_back(text):
    x = np.random.default_rng(0).uniform(0.1, 2.0, (50, 2))
    formula = parse(text)
    again = read_back(printed(formula.outputs[0]))
    assert evaluate(again, x) == pytest.approx(evaluate(formula, x), rel=1e-13)


def test_unknown_functions_are_refused():
    with pytest.raises(InputError, match="erf"):
        printed(parse("erf(x1)").outputs[0])


def layer_of(formula, domain, eps):
    return subject_of(ol.build(formula, domain, tolerance=eps), None)


@pytest.fixture(scope="module")
def sine():
    return layer_of("sin(x)", "0:2*pi", 1e-4)


def numbers(text):
    return {Fraction(found) for found in re.findall(r"\d+(?:/\d+)?", text.replace(" / ", "/"))}


def test_the_file_holds_the_weights_and_the_claim(sine):
    text = coq.source(sine)
    held = numbers(text[text.index("Definition W :") : text.index("Definition f ")])
    for name, weights in sine.model.state_dict().items():
        assert {abs(Fraction(v)) for v in weights.flatten().tolist()} <= held, name
    upper = Fraction(sine.approximation.domain.upper[0])
    claim = f"0 <= x1 <= ({upper.numerator} / {upper.denominator}) -> Rabs (run W [x1] - f x1) <= (1 / 10000)."
    assert claim in text
    assert "Definition f (x1 : R) : R := (sin (x1))." in text
    assert not re.search(r"\b(Axiom|Admitted|admit|Parameter|Hypothesis)\b", text)


@pytest.mark.parametrize(
    ("formula", "domain", "found"),
    [
        ("x1*x2*x3", "0:1", "3 variables that are mixed"),
        ("sin(x) + abs(x - 1)", "0:2", "kinks beside"),
        ("erf(x)", "0:1", "erf"),
        ("where(x < 0.5, 0, x)", "0:1", "found"),
    ],
)
def test_what_is_not_covered_is_refused(formula, domain, found):
    target = ol.Target(formula, domain, margin=0.1 if "where" in formula else 0.0)
    with pytest.raises(InputError, match=found):
        coq.source(subject_of(ol.build(target, tolerance=0.1), None))


def test_without_coq(sine, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    made = ol.export(sine.approximation, tmp_path / "sine.v", to="coq")
    assert made.bound is None
    assert "not proved: there is no coqc" in made.notes[0]
    assert (tmp_path / "sine.v").read_text() == coq.source(sine)
    sine.approximation.save(tmp_path / "sine")
    with pytest.raises(InputError, match="no coqc here"):
        checked(tmp_path / "sine", 60.0)


def test_a_failure_is_refused_not_written(sine, tmp_path, monkeypatch):
    monkeypatch.setattr(coq, "run", lambda *_, **__: CoqAnswer(False, 1.0, "coqc stops at the proof of close_1"))
    with pytest.raises(InputError, match="close_1"):
        ol.export(sine.approximation, tmp_path / "sine.v", to="coq")
    assert not (tmp_path / "sine.v").exists()


def test_not_proved_is_no_refutation(sine, tmp_path, monkeypatch, capsys, as_user):
    monkeypatch.setattr(by_kernel, "run", lambda *_: CoqAnswer(False, 9.0, "coqc took more than 9 s"))
    sine.approximation.save(tmp_path / "sine")
    assert main(["check", "--coq", str(tmp_path / "sine")]) == 3
    assert capsys.readouterr().out == "NOT PROVED: coqc took more than 9 s\n"


def test_a_layer_that_misses_its_tolerance_is_refused(sine):
    other = copy.deepcopy(sine.model)
    with torch.no_grad():
        other.W_V[0] *= 1 + 1e-5
    with pytest.raises(InputError, match="nothing to prove"):
        coq.source(replace(sine, model=other))


@pytest.fixture(scope="module")
def product():
    return layer_of("x1*x2", [(0, 1)] * 2, 1e-4)


def test_two_variables_are_cut_into_slices_and_more_groups_stay_apart(product):
    text = coq.source(product)
    assert "Rabs (run W [x1; x2] - f x1 x2) <= (1 / 10000)." in text
    assert "let found := reify t" in text
    text = coq.source(layer_of("x1*x2 + sin(x3)", [(0, 1)] * 3, 1e-2))
    assert "Definition f1 (x1 x2 : R) : R := (x1 * x2)." in text
    assert "Definition f2 (x3 : R) : R := (sin (x3))." in text
    assert text.count("let found := reify t") == 1


@pytest.mark.parametrize(("formula", "order"), [("x1*sin(3*x2)", "[x2; x1]"), ("sin(3*x1)*x2", "[x1; x2]")])
def test_slices_lie_along_the_input_in_which_less_happens(formula, order):
    assert f"let found := reify t {order}" in coq.source(layer_of(formula, [(0, 1)] * 2, 1e-2))


def test_what_points_refute_is_refused_unless_it_is_meant(product):
    less = replace(product.approximation.certificate, tolerance=product.approximation.certificate.observed * 0.9)
    false = replace(product, approximation=replace(product.approximation, certificate=less))
    with pytest.raises(InputError, match="nothing to prove"):
        coq.source(false)
    assert "Theorem certified" in coq.source(false, anyway=True)


class TestWithCoq:
    pytestmark = proves

    @pytest.mark.parametrize(
        ("formula", "domain", "eps"),
        [
            ("sin(x)", "0:2*pi", 1e-6),
            ("1/(1+25*x^2)", "-1:1", 1e-6),
            ("sin(x1)+sin(x2)", "0:2*pi", 1e-6),
            ("abs(x1-x2)", "0:1", 1e-3),
            ("max(x1,x2,x3)", "0:1", 1e-3),
            ("x1*x2", "0:1", 1e-4),
            ("sin(x1*x2)", "0:1", 1e-2),
            ("x1*x2 + sin(x3)", "0:1", 1e-3),
        ],
    )
    def test_it_accepts(self, formula, domain, eps, tmp_path):
        layer_of(formula, domain, eps).approximation.save(tmp_path / "layer")
        found = checked(tmp_path / "layer", 300.0)
        assert found.verdict == "VALID (kernel)"
        assert "Classical_Prop.classic" in found.axioms

    def test_it_rejects_other_weights(self, sine):
        text = coq.source(sine)
        start, end = text.index("W_K :="), text.index("W_V :=")
        digit = re.search(r"\d{5}(\d)\d{9,} /", text[start:end]).start(1) + start
        changed = text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :]
        found = run(changed, 300.0)
        assert found.accepted is False
        assert "head_1" in found.reason

    def test_it_rejects_a_kink_that_is_not_so_sharp(self):
        text = coq.source(layer_of("abs(x1-x2)", "0:1", 1e-3))
        found = run(text.replace("<= (1 / 1000).", "<= (1 / 4000)."), 300.0)
        assert found.accepted is False
        assert "certified" in found.reason

    def test_it_rejects_what_is_only_assumed(self, sine):
        found = run(coq.source(sine).replace("Qed.", "Admitted."), 300.0)
        assert found.accepted is False
        assert "assumes" in found.reason

    def test_it_rejects_a_tolerance_below_the_error(self, sine):
        text, share = coq.source(sine), tolerance_of(Fraction(1, 10000))
        below = Fraction(sine.approximation.certificate.observed * 0.99)
        text = text.replace(f"({share.numerator} / {share.denominator})", f"({below.numerator} / {below.denominator})")
        found = run(text.replace("(1 / 10000)", f"({below.numerator} / {below.denominator})"), 300.0)
        assert found.accepted is False
        assert "close_1" in found.reason

    @pytest.mark.parametrize("share", [0.99, 0.8])
    def test_it_rejects_a_product_with_a_larger_error(self, product, share):
        a = product.approximation
        less = replace(a.certificate, tolerance=a.certificate.observed * share)
        found = run(coq.source(replace(product, approximation=replace(a, certificate=less)), anyway=True), 300.0)
        assert found.accepted is False
        assert "covered_1" in found.reason

    def test_it_rejects_an_expression_that_is_not_smooth(self, product):
        """The square root of x1, which is 0 at 0, has no second derivative there."""
        text = coq.source(product)
        wrong = text.replace(
            "Definition f1 (x1 x2 : R) : R := (x1 * x2).", "Definition f1 (x1 x2 : R) : R := (sqrt x1)."
        )
        assert wrong != text
        assert run(wrong, 300.0).accepted is False
