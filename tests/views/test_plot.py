"""What pictures are made of: scenes, where heads are, figures, and the terminal."""

import io
import json
import sys

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

import onelayer as ol
from cases import plain_config, random_model
from onelayer.apps.cli import main
from onelayer.common.numbers import at_most
from onelayer.views import certificate_text, terminal
from onelayer.views.figures import signed_log
from onelayer.views.head_map import head_map_of
from onelayer.views.scene import scenes
from onelayer.views.slope_figure import slope_error_figure


@pytest.fixture(scope="module")
def product():
    return ol.build("sin(x1)*x2", [(0, 2), (-1, 1)], 1e-2)


@pytest.fixture(scope="module")
def curve():
    return ol.build("1/(1 + 25*x**2)", {"x": (-1, 1)}, 1e-2)


def test_a_scene_holds_f_and_t_at_its_points(product):
    (scene,) = scenes(product)
    i, j = 7, 30
    x = np.array([scene.axes[0][i], scene.axes[1][j]])
    assert scene.T[i, j, 0] == pytest.approx(product(x), abs=1e-12)
    assert scene.f[i, j, 0] == pytest.approx(np.sin(x[0]) * x[1], abs=1e-14)
    assert np.abs(scene.error).max() <= product.certificate.bound


def test_sliders_of_a_scene_move_the_other_variables():
    approx = ol.build("x1 + 2*x2 + 3*x3", [(0, 1)] * 3, 1e-3)
    found = scenes(approx)
    assert [s.drawn for s in found] == [(0, 1), (0, 2), (1, 2)]
    scene = found[1]
    assert scene.sliders == (1,)
    assert scene.f[3, 5, 2, 0] == pytest.approx(scene.axes[0][5] + 2 * scene.stops[0][3] + 3 * scene.axes[1][2])


def test_outside_the_domain_a_scene_is_empty():
    (scene,) = scenes(ol.build("x1*x2", [(-1, 1)] * 2, 0.1, within="x1**2 + x2**2 <= 1"))
    assert np.isnan(scene.T[0, 0]).all()
    assert np.isfinite(scene.T[30, 30]).all()


def test_gates_are_where_the_weights_switch():
    """At a gate's corner the anchor and the token have equal attention weight, in some head of the model itself."""
    approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.8, method="representative")
    found = [g for g in head_map_of(approx).gates if len(g.at) == 1]
    assert len(found) >= 12

    def weights(gate, step):
        """[head]: weights of the token and of the anchor, seen from the output token, a step behind the corner."""
        ((j, at),) = gate.at.items()
        x = torch.full((1, 2, 1), 3.0, dtype=torch.float64)
        x[0, j] = at + step * gate.opens[j]
        seen = approx.model.attention(x)[0, :, -1]
        return seen[:, j], seen[:, 2]

    for gate in found:
        token, anchor = weights(gate, 0.0)
        switching = (token - anchor).abs() < 1e-6
        switching &= (weights(gate, 0.3)[1] > 0.9) & (weights(gate, -0.3)[0] > 0.9)
        assert switching.any()
        assert not ((token - anchor).abs() < 1e-6).all()


def test_tokens_are_in_the_domain_and_edges_where_scores_agree():
    layer = ol.build("exp(-(x1 - 0.5)**2 - x2**2)", [(0, 1)] * 2, 1e-2, method="solved", construction="memory")
    found = head_map_of(layer)
    assert len(found.tokens) == layer.units
    assert all(0 <= v <= 1 for t in found.tokens for v in t.at)
    edge = head_map_of(ol.build("abs(x1 - x2)", [(0, 1)] * 2, 1e-3)).edges[0]
    assert edge.normal[0] == pytest.approx(-edge.normal[1])
    assert edge.level == pytest.approx(0.0, abs=1e-9)


@pytest.mark.long
def test_a_trained_layer_has_mean_attention():
    approx = ol.train("x1*x2", [(0, 1)] * 2, heads=2, width=8, steps=20)
    found = head_map_of(approx)
    assert found.mean.shape == (2, approx.model.config.all_tokens)
    assert found.mean.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("what", [None, "function", "error", "heads", "weights", "spectra"])
def test_figures_of_an_approximation(product, curve, what):
    for approx in (product, curve):
        figure = approx.plot(what)
        assert isinstance(figure, go.Figure)
        assert len(figure.data)


def test_the_error_is_drawn_within_its_band(curve):
    figure = curve.plot("error")
    assert np.abs(np.array(figure.data[0].y)).max() <= curve.certificate.bound
    assert figure.layout.shapes[0].y1 == curve.certificate.bound == -figure.layout.shapes[0].y0


def test_contributions_add_up_in_the_figure(product):
    (fall,) = product.plot("contributions", at=[1.0, 0.5]).data
    assert sum(fall.x[:-1]) == pytest.approx(fall.x[-1])
    assert fall.x[-1] == pytest.approx(product([1.0, 0.5]))


def test_figures_of_other_values(product):
    trained = ol.train("x1*x2", [(0, 1)] * 2, heads=2, width=8, steps=20)
    model = random_model(plain_config())
    for thing in (trained.history, model, ol.inspect(model), product.explain([1.0, 0.0])):
        assert isinstance(ol.plot(thing), go.Figure)
    assert isinstance(trained.plot("training"), go.Figure)


@pytest.mark.parametrize(
    ("thing", "asked", "found"),
    [
        (lambda p: ol.plot(3), "an Approximation", "int"),
        (lambda p: p.plot("pie"), "a picture", "'pie'"),
        (lambda p: p.plot("training"), "the history", "none"),
        (lambda p: p.plot("contributions"), "a point", "None"),
        (lambda p: p.plot("function", output=3), "output, a whole number", "3"),
        (lambda p: ol.plot(p.model, "heads"), "an Approximation to choose", "heads"),
        (lambda p: ol.gallery.histogram(4, 3).plot(), "real inputs", "token numbers"),
        (lambda p: ol.gallery.sort(3, tolerance=1e-3).plot("error"), "f, to draw", "not available"),
    ],
)
def test_bad_wishes_are_refused(product, as_user, thing, asked, found):
    with pytest.raises(ol.InputError, match=asked) as refusal:
        thing(product)
    assert found in str(refusal.value)


def test_signed_log_keeps_sign_and_order():
    shade, largest = signed_log(np.array([-8.0, -1e-9, 0.0, 1e-3, 4.0]))
    assert largest == 8.0
    assert shade[0] == -1.0
    assert shade[2] == 0.0
    assert 0 < shade[3] < shade[4] < 1


def test_words_claim_what_the_certificate_proves(product):
    assert f"≤ {at_most(product.certificate.bound)}." in certificate_text.statement(product)
    assert "proved" in certificate_text.statement(product)
    refuted = ol.build("sin(40*x1)", [(0, 1)], 1e-6, units=2, method="solved")
    assert "does not hold" in certificate_text.statement(refuted)
    memorised = ol.memorize(np.eye(3), np.array([0, 1, 2]))
    assert certificate_text.band(memorised) == ""  # proved at the samples alone
    disc = ol.build("x1*x2", [(-1, 1)] * 2, 0.1, within="x1**2 + x2**2 <= 1")
    assert "x1**2 + x2**2 <= 1" in certificate_text.band(disc)


def test_words_say_of_which_points_and_on_whose_word(tmp_path):
    step = ol.build("where(x1 > 0.5, 1, 0)", [(0, 1)], 0.05, margin=0.1)
    for approx in (step, ol.load(step.save(tmp_path / "step"))):
        assert "more than 0.1 away from every jump" in certificate_text.statement(approx)
        assert "more than 0.1 away from every jump" in certificate_text.band(approx)
    promised = ol.build(lambda x: x[:, 0] + 2, [(0, 1)], 0.1, lipschitz=1.0)
    for approx in (promised, ol.load(promised.save(tmp_path / "promised"))):
        assert approx.certificate.verdict == "CERTIFIED"
        assert certificate_text.statement(approx).startswith("If |f(x) − f(y)| ≤ ")
        assert "if |f(x) − f(y)| ≤ " in certificate_text.band(approx)
    assert "if f is as declared" in promised.plot("error").layout.annotations[0].text
    single = ol.build("x1*x1", [(0, 1)], 1e-2, dtype="float32")
    assert "every float32 x" in certificate_text.statement(single)
    share = ol.build("2 + sin(x1)", [(0, 6)], 1e-2, relative=True)
    assert "at most 0.01·|f(x)|" in certificate_text.statement(share)
    assert "the smallest |f|" in certificate_text.how_to_check(share)


def test_nothing_is_drawn_within_the_margin_of_a_jump():
    step = ol.build("where(x1 > 0.5, 1, 0)", [(0, 1)], 0.05, margin=0.1)
    (scene,) = scenes(step)
    near = np.abs(scene.axes[0] - 0.5) < 0.099
    assert np.isnan(scene.error[near]).all()
    assert np.isfinite(scene.f).all()
    assert np.nanmax(np.abs(scene.error)) <= step.certificate.bound


def test_a_changed_model_is_not_drawn_with_its_bound(tmp_path):
    approx = ol.build("x1", [(0, 1)], 0.1)
    with torch.no_grad():
        approx.model.b_R += 1.0
    for call in (lambda: approx.report(tmp_path / "page.html"), lambda: approx.plot("error"), lambda: approx.plot()):
        with pytest.raises(ol.InputError, match="changed after it was certified"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_heads_of_every_dimension_are_drawn():
    """Planes alone, in three or more variables, have no picture of their own: their attention is shown."""
    found = head_map_of(ol.gallery.sort(4, tolerance=1e-6))
    assert found.mean is not None
    far = ol.build("x1 + 1e-3*x1**2", [(0, 1)], 1e-6).plot("heads")
    assert all(-0.2 <= v <= 1.2 for trace in far.data for v in trace.x if v is not None)


def test_an_edge_has_the_sign_of_its_head():
    for formula, value in (("max(x1, x2)", 1.0), ("min(x1, x2)", -1.0), ("-abs(x1 - x2)", -2.0)):
        (edge,) = head_map_of(ol.build(formula, [(0, 1)] * 2, 1e-3)).edges
        assert edge.value == pytest.approx(value)


def test_samples_alone_have_passes_too():
    x = np.linspace(0, 1, 30)[:, None]
    approx = ol.build((x, np.sin(x[:, 0])), tolerance=0.1)
    assert "y = 0" in approx.plot("passes", at=[0.123]).layout.title.text


@pytest.mark.usefixtures("as_user")
def test_inspect_in_a_terminal_without_block_characters(product, tmp_path, monkeypatch):
    folder, out = product.save(tmp_path / "product"), io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert main(["inspect", str(folder)]) == 0
    sys.stdout.flush()
    assert b"\\u25" not in out.getvalue()


@pytest.mark.usefixtures("as_user")
def test_inspect_on_the_command_line(product, tmp_path, capsys):
    folder = product.save(tmp_path / "product")
    assert main(["inspect", str(folder)]) == 0
    text = capsys.readouterr().out
    for part in ("CERTIFIED", "Singular values", "Where units", "What heads add", "as a share of the bound", "█"):
        assert part in text
    assert main(["inspect", str(folder), "--format", "markdown"]) == 0
    assert "| verdict | CERTIFIED |" in capsys.readouterr().out
    assert main(["inspect", str(folder), "--format", "latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out
    assert main(["inspect", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "CERTIFIED"
    assert {m["name"] for m in record["matrices"]} >= {"W_Q", "W_K", "W_V", "W_O"}
    assert main(["inspect", str(tmp_path)]) == 2


def test_terminal_charts_of_layers_without_a_formula():
    for approx in (
        ol.gallery.sort(3, tolerance=1e-3),
        ol.gallery.histogram(4, 3),
        ol.memorize(np.eye(3), np.arange(3)),
    ):
        assert "Singular values" in terminal.summary(approx)


def test_spark_tells_nothing_from_little():
    assert terminal.spark(np.array([0.0, 1e-9, 0.5, 1.0])) == " ▁▄█"


@pytest.mark.parametrize("domain", [[(0, 1)], pytest.param([(0, 1)] * 2, marks=pytest.mark.long)])
def test_the_error_of_slopes_is_drawn_within_its_bound(domain):
    formula = "sin(3*x1)" if len(domain) == 1 else "exp(-x1)*cos(2*x2)"
    approx = ol.build(formula, domain, 1e-2, slope_tolerance=0.1)
    drawn = slope_error_figure(approx)
    values = [np.asarray(t.y if len(domain) == 1 else t.z, dtype=float) for t in drawn.data]
    assert len(values) == len(domain)
    assert all(np.nanmax(np.abs(v)) <= approx.certificate.slope.bound for v in values)
    assert slope_error_figure(ol.build(formula, domain, 1e-2)) is None
