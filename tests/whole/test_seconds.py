"""`seconds` is the time for everything; when it is up, the best so far is kept. What rounding forbids is refused at once."""

import math
import threading
import time

import numpy as np
import pytest

import onelayer as ol
from onelayer import InputError
from onelayer.apps.cli import main
from onelayer.common.budget import Budget
from onelayer.construction.relative import relative_to
from onelayer.layer.arithmetic import arithmetic_of
from onelayer.proof.least_error import least_error

SHARP = ("exp(-50*((x1-0.5)**2+(x2-0.5)**2+(x3-0.5)**2+(x4-0.5)**2))*sin(20*x1*x2*x3*x4)", [(0, 1)] * 4, 1e-4)
WAVES = ("sin(12*x1*x2*x3)+cos(9*x1-7*x2*x3)", [(0, 1)] * 3, 1e-6)
KINKS = ("abs(sin(9*x1*x2))+exp(x1*x3)", [(0, 1)] * 3, 1e-8)
CUT = ("sin(9*x1*x2)+cos(7*x2*x3)", [(0, 1)] * 3, 1e-5)
MANY = ("tanh(9*x1*x2*x3*x4*x5*x6)", [(-1, 1)] * 6, 1e-3)


class Overrun:
    """Seconds spent after the time was up, or processor seconds if these are fewer: the load of the machine does not count."""

    def __init__(self, seconds):
        self.at_end = None
        self.timer = threading.Timer(seconds, self._note)

    def _note(self):
        self.at_end = time.process_time(), time.perf_counter()

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *error):
        self.timer.cancel()
        now = time.process_time(), time.perf_counter()
        self.spent = 0.0 if self.at_end is None else min(b - a for a, b in zip(self.at_end, now, strict=True))


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Modules are imported before the clock starts."""
    ol.build("sin(3*x1)", [(0, 1)], 0.1, seconds=5.0)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("target", "seconds", "options"),
    [
        (SHARP, 3.0, {}),
        pytest.param(SHARP, 5.0, {}, marks=pytest.mark.long),
        pytest.param(SHARP, 15.0, {}, marks=pytest.mark.long),
        pytest.param(SHARP, 3.0, {"method": "solved"}, marks=pytest.mark.long),
        pytest.param(WAVES, 3.0, {}, marks=pytest.mark.long),
        pytest.param(WAVES, 3.0, {"dtype": "float32", "construction": "gates"}, marks=pytest.mark.long),
        pytest.param(KINKS, 3.0, {}, marks=pytest.mark.long),
        pytest.param(CUT, 3.0, {"within": "x1**2 + x2**2 + x3**2 <= 1"}, marks=pytest.mark.long),
        pytest.param(MANY, 3.0, {}, marks=pytest.mark.long),
    ],
)
def test_a_build_keeps_its_time(target, seconds, options, tmp_path):
    function, domain, tolerance = target
    tolerance = max(tolerance, 1e-5) if "dtype" in options else tolerance
    with Overrun(seconds) as overrun:
        approx = ol.build(function, domain, tolerance, seconds=seconds, **options)
    assert overrun.spent <= max(2.0, 0.1 * seconds)
    assert approx.certificate.verdict in ("REFUTED", "UNDECIDED")
    assert math.isfinite(approx.certificate.observed)
    assert ol.load(approx.save(tmp_path / "f")).certificate == approx.certificate


@pytest.mark.usefixtures("as_user")
def test_what_is_left_undone_is_said():
    approx = ol.build(*WAVES, seconds=0.05)
    assert approx.certificate.verdict != "CERTIFIED"
    assert any("the time was up" in note and "the best layer so far" in note for note in approx.facts.notes)
    assert approx.units > 0
    done = ol.build("sin(3*x1)", [(0, 1)], 0.1)
    assert done.certificate.verdict == "CERTIFIED"
    assert not done.facts.notes


@pytest.mark.long
@pytest.mark.usefixtures("as_user")
def test_other_calls_keep_their_time():
    layer = ol.build(*WAVES, seconds=2.0)
    with Overrun(2.0) as overrun:
        found = ol.certify(layer, tolerance=1e-6, seconds=2.0)
    assert overrun.spent <= 2.0
    assert found.verdict != "CERTIFIED"
    with Overrun(2.0) as overrun:
        ol.train("sin(5*x1*x2)", [(0, 1)] * 2, seconds=2.0, steps=10**6)
    assert overrun.spent <= 2.0
    with Overrun(2.0) as overrun:
        inputs = np.random.default_rng(0).random((500, 3))
        ol.distill(lambda x: np.sin(12 * x[:, 0] * x[:, 1] * x[:, 2]), inputs, seconds=2.0, steps=10**6)
    assert overrun.spent <= 2.0


@pytest.mark.usefixtures("as_user")
def test_a_relative_tolerance_is_part_of_the_time():
    """The lower bound of |f| is valid whenever its search ends."""
    product = "*".join(
        f"(1.5 + sin({k}*x{k % 6 + 1} + cos(x{(k + 1) % 6 + 1}*x{(k + 2) % 6 + 1})))" for k in range(1, 9)
    )
    target = ol.Target(product, [(0, 1)] * 6)
    with Overrun(0.5) as overrun:
        found = relative_to(target, 1e-3, Budget(0.5))
    assert overrun.spent <= 1.0
    x = target.domain.points(np.random.default_rng(0).random((20_000, 6)))
    assert 0 < found.least <= np.abs(target(x)).min()
    with pytest.raises(InputError, match="or more seconds to find out"):
        relative_to(ol.Target("x1**2 - 1.9*x1*x2 + x2**2 + 1e-3", [(0, 1)] * 2), 1e-3, Budget(0.0))


def test_shares_of_a_budget_end_with_it():
    whole = Budget(10.0)
    assert whole.up_to(3.0).seconds == 3.0
    assert whole.up_to(30.0).seconds <= 10.0
    assert whole.share(0.5).seconds <= 5.0
    assert whole.share(0.5).interrupted is whole.interrupted
    spent = Budget(0.0)
    assert spent.over()
    assert spent.share(0.5).over()
    assert spent.up_to(5.0).over()


@pytest.mark.usefixtures("as_user")
def test_on_the_command_line_the_report_is_part_of_the_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = ["build", WAVES[0], "--domain", "0:1", "--eps", "1e-6"]
    assert main([*asked, "--out", "f", "--seconds", "0.05"]) == 1
    assert "onelayer report f" in capsys.readouterr().out
    assert not (tmp_path / "f" / "report.html").exists()
    assert ol.load("f").certificate.verdict != "CERTIFIED"
    for command in ([*asked, "--out", "g"], ["certify", "f"]):
        for bad in ("0", "-1", "nan"):
            assert main([*command, "--seconds", bad]) == 2
    assert not (tmp_path / "g").exists()


# -- what rounding forbids ----------------------------------------------------------------------------------------------

IMPOSSIBLE = [
    ("sin(x1)+sin(x2)", [(0, 6)] * 2, 1e-20, "float64"),
    ("sin(x1)", [(0, 3)], 5e-17, "float64"),
    ("1000+x1", [(0, 1)], 1e-14, "float64"),
    ("sin(x1)", [(0, 3)], 1e-8, "float32"),
    ("x1; 1e6*exp(x1)", [(0, 1)], 1e-3, "float32"),
]


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(("formula", "domain", "tolerance", "dtype"), IMPOSSIBLE)
@pytest.mark.parametrize("method", ["polished", "solved"])
def test_a_tolerance_below_rounding_is_refused_with_a_number(formula, domain, tolerance, dtype, method, monkeypatch):
    monkeypatch.setattr("onelayer.pipeline.METHODS", {})  # nothing is searched
    with pytest.raises(InputError, match="a tolerance that rounding allows") as refused:
        ol.build(formula, domain, tolerance, dtype=dtype, method=method)
    number = float(refused.value.change.split()[-1])
    assert number > tolerance
    with pytest.raises(KeyError):  # with that number it goes on
        ol.build(formula, domain, number, dtype=dtype, method=method)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("formula", "domain"), [("sin(x1)", [(0, 3)]), ("exp(x1)/3", [(0, 5)]), ("2*x1+1", [(0, 1)])])
def test_the_number_is_proved(formula, domain, dtype):
    """The best float at some point of the domain is off by that much, and never by more than half a unit."""
    import mpmath

    target, arithmetic = ol.Target(formula, domain), arithmetic_of(dtype)
    found = least_error(target, 1e-30, arithmetic)
    kind = np.dtype(dtype).type
    x = target.domain.points(np.random.default_rng(0).random((4000, 1))).astype(kind).astype(np.float64)
    assert 0 < found <= arithmetic.u * 2 ** math.ceil(math.log2(np.abs(target(x)).max()))
    mpmath.mp.prec = 200
    exact = {"sin(x1)": mpmath.sin, "exp(x1)/3": lambda v: mpmath.exp(v) / 3, "2*x1+1": lambda v: 2 * v + 1}[formula]
    offs = []
    for v in x[:, 0].tolist():
        y = exact(mpmath.mpf(v))
        offs.append(abs(y - mpmath.mpf(float(kind(float(y))))))
    assert max(offs) >= 0.9 * found  # such points are easily found


@pytest.mark.parametrize(
    ("formula", "options"), [("x1", {}), ("7", {}), ("x1*4 - 2", {}), ("where(x1 < 0.5, 0, sin(x1))", {"margin": 0.1})]
)
def test_nothing_is_refused_that_may_be_possible(formula, options):
    assert least_error(ol.Target(formula, [(0, 1)], **options), 1e-30, arithmetic_of("float64")) == 0.0
