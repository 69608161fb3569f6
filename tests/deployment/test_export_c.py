"""C: the file compiles without a warning and answers as the model does; where a bound is given it holds."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, plain_config, random_layer, random_model
from exporting import SINES, size_of, wrapped
from onelayer.common.errors import InputError
from onelayer.deployment.export import c as c_format
from onelayer.deployment.export import c_form
from onelayer.deployment.export.subject import at_most
from onelayer.layer.assemble import Outputs, assemble, frame_of
from onelayer.proof.slopes import slopes_at
from onelayer.target.domain import domain_of

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FMA = Path("/proc/cpuinfo").is_file() and " fma " in Path("/proc/cpuinfo").read_text()
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
FUSED = ("-O3", "-ffp-contract=fast", *(("-mfma",) if FMA else ()))  # a product and a sum rounded once
compiled = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")


def answers(path, x, flags=("-O2",), *words):
    """What the file answers, compiled as its header says."""
    program = path.with_suffix("")
    subprocess.run([COMPILER, *STRICT, *flags, "-DONELAYER_MAIN", path, "-lm", "-o", program], check=True)
    lines = "\n".join(" ".join(map(repr, row)) for row in x.astype(np.float64).tolist())
    found = subprocess.run(
        [program, *words], input=lines, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return np.array([[float(number) for number in line.split()] for line in found])


@pytest.mark.long
@compiled
@settings(max_examples=12)
@given(config=configs(), seed=st.integers(0, 100))
def test_every_layer_is_the_same_in_c(config, seed, tmp_path_factory):
    approximation = wrapped(random_model(config, seed))
    path = tmp_path_factory.mktemp("c") / "m.c"
    found = ol.export(approximation, path, to="c", points=50)
    assert found.bound is None  # trained layers are measured alone
    x = approximation.domain.points(np.random.default_rng(seed).random((7, approximation.domain.dimension)))
    own = approximation(x).reshape(len(x), -1)
    assert max(found.difference, np.abs(answers(path, x, ()) - own).max()) <= 1e-9 * size_of(approximation)


@compiled
@pytest.mark.parametrize(
    ("dtype", "tolerance", "claim"),
    [("float64", 1e-6, 1e-6), pytest.param("float32", 5e-4, 1e-3, marks=pytest.mark.long)],
)
def test_sines_hold_in_c(dtype, tolerance, claim, tmp_path):
    approximation = ol.build(*SINES, tolerance, dtype=dtype)
    path = tmp_path / "sines.c"
    found = ol.export(approximation, path, to="c", points=1000)
    x = np.random.default_rng(17).uniform(0, 2 * np.pi, (100_000, 2)).astype(dtype)
    for flags in (("-O2",), FUSED):
        y = answers(path, x, flags)[:, 0]
        assert y.shape == (len(x),)
        assert np.abs(y - np.sin(x.astype(np.float64)).sum(axis=1)).max() <= found.in_all <= claim
        assert np.abs(y - approximation(x)).max() <= found.bound < claim / 5
        x = x[:10_000]
    assert found.in_all <= (approximation.certificate.bound + found.bound) * (1 + 1e-9)
    assert f"an error of at most {at_most(found.in_all)} on the domain" in path.read_text()
    assert float(at_most(found.in_all)) >= found.in_all


@compiled
@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bound_holds_for_sums_of_softmax_averages(kind, dtype, tmp_path):
    for seed in range(2):
        layer = random_layer(2, 2, seed, 20.0, kind)
        domain = domain_of([(-1, 2)] * 2)
        model = assemble(layer, frame_of(domain), Outputs(1, 2, (0,)))
        approximation = wrapped(model.float() if dtype == "float32" else model)
        found = ol.export(approximation, tmp_path / f"m{seed}.c", to="c", points=3000)
        assert found.difference <= found.bound
        assert found.bound <= {"float64": 0.01, "float32": 0.05}[dtype]


@pytest.mark.one_in(2)
@compiled
@pytest.mark.parametrize(
    "made",
    [
        lambda: ol.build("exp(-x1)*cos(3*x2)", [(0, 1)] * 2, 1e-3, construction="memory"),
        lambda: ol.build("sin(x1)*x2", [(0, 1)] * 2, 0.05, layout="wide"),
        lambda: ol.build("abs(x1 - x2) + abs(x1 + x2 - 1)", [(0, 1)] * 2, 1e-3),
        lambda: ol.build("sin(3*x1)", [(0, 1)], 0.01, method="solved", hinges=4),
        lambda: ol.gallery.sort(4),
        lambda: ol.gallery.histogram(5, 4),
        lambda: ol.gallery.reverse(3),
        lambda: ol.memorize(np.arange(12.0).reshape(6, 2), np.arange(6) % 3),
    ],
    ids=["memory", "wide", "kinks", "hinges", "sort", "tokens", "route", "samples"],
)
def test_constructed_layers_of_every_kind(made, tmp_path):
    approximation = made()
    found = ol.export(approximation, tmp_path / "m.c", to="c", points=500)
    sharp = 1 + (approximation.facts.largest_score or 0.0)
    assert found.difference <= 1e-13 * sharp * size_of(approximation) * (1 + (approximation.facts.total or 0.0))
    assert found.bound is None or found.difference <= found.bound


@compiled
def test_one_point_and_a_batch_from_another_program(tmp_path):
    """The two functions as a program of one's own calls them."""
    approximation = ol.build("x1*x2; x1 - x2**2", [(0, 1), (-1, 1)], 0.01)
    ol.export(approximation, tmp_path / "m.c", to="c", points=10)
    (tmp_path / "use.c").write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        "void onelayer(const double *x, double *y);\n"
        "void onelayer_batch(size_t count, const double *x, double *y);\n"
        "int main(void)\n{\n    const double x[4] = {0.25, 0.5, 1, -1};\n    double y[4], z[2];\n"
        "    onelayer_batch(2, x, y);\n    onelayer(x + 2, z);\n"
        '    printf("%.17g %.17g %.17g %.17g %d\\n", y[0], y[1], y[2], y[3], z[0] == y[2] && z[1] == y[3]);\n'
        "    return 0;\n}\n"
    )
    command = [COMPILER, *STRICT, tmp_path / "m.c", tmp_path / "use.c", "-lm", "-o", tmp_path / "use"]
    subprocess.run(command, check=True)
    *y, same = subprocess.run([tmp_path / "use"], capture_output=True, text=True, check=True).stdout.split()
    assert same == "1"
    assert np.abs(np.array(y, dtype=float) - approximation([[0.25, 0.5], [1, -1]]).ravel()).max() < 1e-12


@compiled
def test_a_hostile_description_stays_in_its_comment(tmp_path):
    entry, hostile = ol.gallery.sort(3), 'x */ #error "out" /* ???/\n\\ β ‮'
    approximation = replace(entry, description=replace(entry.description, text=hostile))
    assert ol.export(approximation, tmp_path / "m.c", to="c", points=10).difference < 1e-12


def test_without_a_compiler_the_file_is_written_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(c_format.shutil, "which", lambda name: None)
    found = ol.export(ol.gallery.sort(3), tmp_path / "m.c", to="c", points=10)
    assert (found.difference, found.points) == (None, 0)
    assert "no C compiler" in str(found)
    assert "observed" not in (tmp_path / "m.c").read_text()


def test_what_is_too_large_is_refused(tmp_path):
    large = wrapped(random_model(plain_config(ffn_width=300_000)))
    with pytest.raises(InputError, match=r"as C source.*numbers.*onnx"):
        ol.export(large, tmp_path / "m.c", to="c", points=2)
    deep = wrapped(random_model(plain_config(memory_tokens=40_000, ffn_width=1)))
    with pytest.raises(InputError, match="4 MB of stack"):
        ol.export(deep, tmp_path / "m.c", to="c", points=2)
    assert list(tmp_path.iterdir()) == []


def test_a_head_of_too_many_tokens_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(c_form, "MOST_STACK", 8)
    with pytest.raises(InputError, match=r"4 MB of stack.*a head of 3 tokens"):
        ol.export(ol.build("x1*x2", [(0, 1)] * 2, 0.1, construction="gates"), tmp_path / "m.c", to="c", points=2)


def test_the_header_keeps_the_distance_from_jumps(tmp_path):
    """At a jump the error is half its height, whatever the bound: the header says where that holds."""
    approx = ol.build("where(x > 0, 1, 0)", (-1, 1), 0.1, margin=0.2)
    assert approx.certificate.verdict == "CERTIFIED"
    ol.export(approx, tmp_path / "f.c", to="c")
    lines = {line.split()[0]: line for line in (tmp_path / "f.c").read_text().splitlines() if line.startswith("   ")}
    assert lines["domain"].endswith("x in [-1, 1], more than 0.2 away from every jump")
    assert "on the domain, more than 0.2 away from every jump" in lines["in"]


@pytest.mark.one_in(3)
@compiled
@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_in_c_are_within_their_bound(kind, dtype, tmp_path):
    """Against the slopes of the same weights in float64, whose own rounding is far smaller than the bound in float32."""
    for seed in range(2):
        layer, domain = random_layer(2, 2, seed, 20.0, kind), domain_of([(-1, 2)] * 2)
        model = assemble(layer, frame_of(domain), Outputs(1, 2, (0,))).to(getattr(torch, dtype))
        approximation = wrapped(model)
        path = tmp_path / f"{kind}{seed}.c"
        ol.export(approximation, path, to="c", points=20)
        x = approximation.domain.points(np.random.default_rng(seed).random((2000, 2))).astype(dtype).astype(np.float64)
        text = path.read_text()
        bound = float(re.search(r"onelayer_gradient is within (\S+) of the layer's slopes", text)[1])
        for flags in (("-O2",), FUSED):
            found = answers(path, x, flags, "gradient")
            off = np.abs(found - slopes_at(model, (0,))(x)).max()
            assert off <= bound + 1e-12 * np.abs(found).max()
            assert bound <= 1e-2 * np.abs(found).max()


@pytest.mark.long
@compiled
def test_certified_slopes_hold_in_c(tmp_path):
    approximation, path = ol.build(*SINES, 1e-3, slope_tolerance=1e-2), tmp_path / "sines.c"
    ol.export(approximation, path, to="c", points=100)
    bound = float(re.search(r"and within (\S+) of those of f", path.read_text())[1])
    assert bound <= 1e-2
    x = np.random.default_rng(3).uniform(0, 2 * np.pi, (20_000, 2))
    assert np.abs(answers(path, x, ("-O2",), "gradient") - np.cos(x)).max() <= bound
