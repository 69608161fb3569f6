"""The exponential of C files without libm: every float, many doubles, no slack; and the layers that use it."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, ctx

import onelayer as ol
from cases import plain_config, random_layer, random_model
from exporting import SINES, wrapped
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.deployment.export import c as c_format
from onelayer.deployment.export import c_exp
from onelayer.deployment.export.c_exp import table_exp
from onelayer.layer.arithmetic import ARITHMETICS
from onelayer.layer.assemble import Outputs, assemble, frame_of
from onelayer.target.domain import domain_of

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
HARMLESS = {"memset", "memcpy", "memmove", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}  # a compiler's own
compilers = pytest.mark.parametrize(
    "compiler",
    [pytest.param(c, marks=pytest.mark.skipif(not shutil.which(c), reason=f"no {c} here")) for c in ("gcc", "clang")],
)
compiled = pytest.mark.skipif(not COMPILERS, reason="no C compiler here")

HUNT = """
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
typedef %(real)s real;
%(source)s
static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
static long double worst = 0;
static void look(real x)
{
    const long double found = table_exp(x), e = %(exact)s(x);
    if (x > EXP_LOW && x <= EXP_HIGH) {
        const long double off = fabsl(found - e) / e;
        worst = off > worst ? off : worst;
    } else if (x <= EXP_LOW ? found != 0 || e > %(smallest)s : !isinf(found)) {
        worst = 1;
    }
}
int main(void)
{
    %(points)s
    printf("%%.17Lg\\n", worst);
    return !isnan(table_exp((real)NAN)) || table_exp(0) != 1 || table_exp((real)-INFINITY) != 0;
}
"""
EVERY_FLOAT = """for (uint32_t i = %s; i < %s; i += %s) {
        float x;
        memcpy(&x, &i, 4);
        look(x);
        look(-x);
    }"""
MANY_DOUBLES = """for (long i = 0; i < %s; i++) {
        const double some = (double)(next() >> 11) * 0x1p-53;
        look(EXP_LOW * some);
        look(EXP_HIGH * some);
        look((some < 0.5 ? -1 : 1) * ldexp(some, -(int)(next() %% 60)));
        const double n = (double)(long)(some * 130000 - 65500) + (i %% 2 ? 0.5 : 0); /* where tables and pieces meet */
        look((n + (double)((int)(next() %% 9) - 4) * 0x1p-40) / EXP_STEPS);
    }
    look(EXP_LOW);
    look(nextafter(EXP_LOW, 0));
    look(EXP_HIGH);
    look(nextafter(EXP_HIGH, INFINITY));"""


def worst_error(name, points, folder, *flags, compiler=None):
    """The largest relative error that a program finds; 1 if an end of the range is wrong."""
    float32 = name == "float32"
    text = HUNT % {
        "real": "float" if float32 else "double",
        "source": table_exp(name).source(),
        "exact": "exp"
        if float32
        else "expl",  # a double or an extended number: its own error is far below the bound's margin
        "smallest": "0x1.0000001p-126" if float32 else "0x1.000000000001p-1022L",
        "points": points,
    }
    (folder / "hunt.c").write_text(text)
    call = [compiler or COMPILERS[0], "-std=c99", *(flags or ("-O2",)), folder / "hunt.c", "-lm", "-o", folder / "hunt"]
    subprocess.run(call, check=True)
    return float(subprocess.run([folder / "hunt"], capture_output=True, text=True, check=True).stdout)


def every(step):
    """Floats up to 110, which is beyond both ends; every `step`-th."""
    return EVERY_FLOAT % (0, int(np.float32(110).view(np.uint32)), step)


@compiled
@pytest.mark.parametrize("name", ["float64", "float32"])
def test_the_proved_error_holds_and_is_what_certificates_assume(name, tmp_path):
    bound = table_exp(name).error
    assert bound <= 0.8 * ARITHMETICS[name].exp_error
    worst = worst_error(name, every(997) if name == "float32" else MANY_DOUBLES % 100_000, tmp_path)
    assert bound / 3 < worst <= bound


@compiled
@pytest.mark.long
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-mfma", "-ffp-contract=fast")], ids=["rounded", "fused"])
def test_every_float(flags, tmp_path):
    assert worst_error("float32", every(1), tmp_path, *flags) <= table_exp("float32").error


@compiled
@pytest.mark.long
def test_a_hundred_million_doubles(tmp_path):
    assert worst_error("float64", MANY_DOUBLES % 25_000_000, tmp_path) <= table_exp("float64").error


@pytest.mark.one_in(2)
@compiled
@pytest.mark.parametrize("change", ["table", "coefficients", "step"])
@pytest.mark.parametrize("name", ["float64", "float32"])
def test_the_hunt_finds_a_wrong_constant(name, change, tmp_path, monkeypatch):
    right = table_exp(name)
    values = list(getattr(right, change))
    at = {"table": 5, "coefficients": 0, "step": 1}[change]
    values[at] *= 1 + {"table": 8 * ARITHMETICS[name].u, "coefficients": 0.1, "step": 0.1}[change]
    wrong = replace(right, **{change: tuple(values)})
    monkeypatch.setitem(globals(), "table_exp", lambda _: wrong)
    assert worst_error(name, every(997) if name == "float32" else MANY_DOUBLES % 50_000, tmp_path) > right.error


def test_the_proof_notices_bad_constants(monkeypatch):
    """Fewer terms or entries: a larger error is proved, and the export would refuse it; too long a C_hi is refused at once."""
    for change in ({"degree": 3}, {"entries": 8}):
        monkeypatch.setitem(c_exp.FORMATS, "float64", replace(c_exp.FORMATS["float64"], **change))
        assert table_exp.__wrapped__("float64").error > 4 * ARITHMETICS["float64"].u
        monkeypatch.undo()
    f = c_exp.FORMATS["float64"]
    hi, unit = table_exp("float64").step[0], 2.0**-43
    with ctx.workprec(200):
        R = arb(0.00542)
        c_exp._require_exact(f, (-708.0, 709.0), hi, unit, 65465, R)
        for wrong, words in [
            ((hi, unit, 2**20, R), "C_hi has too many bits"),
            ((hi * 1.3, unit, 65465, R), "C_hi has too many bits"),
            ((hi, unit, 65465, R * 100), "too many bits"),
        ]:
            with pytest.raises(AssertionError, match=words):
                c_exp._require_exact(f, (-708.0, 709.0), *wrong)


def answers(path, x, compiler, *flags):
    program = path.with_suffix("")
    subprocess.run([compiler, *STRICT, *flags, "-DONELAYER_MAIN", path, "-o", program], check=True)  # without -lm
    lines = "\n".join(" ".join(map(repr, row)) for row in x.astype(np.float64).tolist())
    found = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout
    return np.array(found.split(), dtype=np.float64).reshape(len(x), -1)


def undefined(path, compiler, *flags):
    """Symbols that an object of the file needs from elsewhere."""
    subprocess.run([compiler, *STRICT, *flags, "-c", path, "-o", path.with_suffix(".o")], check=True)
    found = subprocess.run(["nm", "-u", path.with_suffix(".o")], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in found.splitlines()}


@pytest.mark.one_in(5)
@compilers
@pytest.mark.parametrize("kind", ["gates", "memory"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_bound_of_a_layer_carries_over(kind, dtype, compiler, tmp_path):
    domain = domain_of([(-1, 2)] * 2)
    model = assemble(random_layer(2, 2, 1, 20.0, kind), frame_of(domain), Outputs(1, 2, (0,)))
    layer = wrapped(model.float() if dtype == "float32" else model)
    path, libm = tmp_path / "own.c", tmp_path / "libm.c"
    found = ol.export(layer, path, to="c", exp="table", points=500)
    assert found.bound == ol.export(layer, libm, to="c", points=500).bound
    x = layer.domain.points(np.random.default_rng(0).random((3000, 2))).astype(dtype)
    for flags in (("-O0",), ("-O2",), ("-O3", "-ffp-contract=fast")):
        assert np.abs(answers(path, x, compiler, *flags) - layer(x).reshape(len(x), -1)).max() <= found.bound
        assert undefined(path, compiler, *flags) <= HARMLESS
    assert "exp" in undefined(libm, compiler, "-O2") or "expf" in undefined(libm, compiler, "-O2")
    assert re.search(
        r"exp +within 1\.\d+ units in the last place \(proved; bounds assume 2\), no libm", path.read_text()
    )


@compiled
def test_layers_step_by_step_and_what_needs_libm(tmp_path):
    silu = wrapped(random_model(plain_config(activation="silu")))
    x = silu.domain.points(np.random.default_rng(0).random((50, silu.domain.dimension)))
    ol.export(silu, tmp_path / "silu.c", to="c", exp="table", points=20)
    assert undefined(tmp_path / "silu.c", COMPILERS[0], "-O2") <= HARMLESS
    assert np.abs(answers(tmp_path / "silu.c", x, COMPILERS[0], "-O2") - silu(x).reshape(len(x), -1)).max() < 1e-9
    for change, words in [({"activation": "gelu"}, "GELU, which needs erf"), ({"norm": "pre"}, "LayerNorm")]:
        with pytest.raises(InputError, match=words):
            ol.export(wrapped(random_model(plain_config(**change))), tmp_path / "no.c", to="c", exp="table", points=5)
    assert not (tmp_path / "no.c").exists()


@compiled
def test_the_command(tmp_path, monkeypatch, capsys, as_user):
    monkeypatch.chdir(tmp_path)
    ol.build(*SINES, 1e-3).save("sines")
    assert main(["export", "sines", "--to", "c", "--exp", "table", "--out", "sines.c", "--points", "100"]) == 0
    text = (tmp_path / "sines.c").read_text()
    assert "math.h" not in text
    assert "an error of at most" in text
    assert undefined(tmp_path / "sines.c", COMPILERS[0], "-O2") <= HARMLESS
    assert main(["export", "sines", "--to", "onnx", "--exp", "table", "--out", "no.onnx"]) == 2
    assert "exp, libm or table, for --to c alone" in capsys.readouterr().err
    monkeypatch.setattr(c_format, "table_exp", lambda name: replace(table_exp(name), error=1e-15))
    with pytest.raises(AssertionError, match="worse than certificates assume"):
        ol.export("sines", "no.c", to="c", exp="table", points=10)
