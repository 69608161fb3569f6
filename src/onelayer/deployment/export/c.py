"""C: one file of C99 that needs only math.h, or not even that (`c_exp`), with the weights as hexadecimal floats, which are exact.

A constructed layer is written as the sum of softmax averages that its weights amount to (`c_form`), any other layer step by step
(`c_layer`). If there is a C compiler, the file is compiled and run before it is written; if it is a sum of softmax averages, its
distance from our own layer is bounded too, rounding included.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ...common.errors import InputError
from ...common.numbers import at_most
from . import c_form, c_layer
from .c_exp import Exponential, TableExp, table_exp
from .c_weights import with_macros
from .program_distance import reading_of
from .subject import Bound, Made, Measured, Subject

UP = 1 + 1e-15  # the rounding of one sum
MOST_NUMBERS = 2**22  # in the source: about 100 MB of text
NUMBERS = {
    "float64": {"real": "double", "suffix": "", "scan": "%lf", "show": "%.17g"},
    "float32": {"real": "float", "suffix": "f", "scan": "%f", "show": "%.9g"},
}


def make(subject: Subject, x: np.ndarray, exp: Exponential = "libm") -> Made:
    """The file, and the comparison at the points x if there is a compiler."""
    if subject.model.parameter_count > MOST_NUMBERS:
        found = f"{subject.model.parameter_count:,} numbers"
        raise InputError(f"a layer of at most {MOST_NUMBERS:,} numbers, as C source", found, "export it as onnx")
    reading = reading_of(subject)
    own = table_exp(subject.arithmetic.name) if exp == "table" else None
    config = subject.model.config
    if own is not None and reading is None and (config.norm != "none" or config.activation == "gelu"):
        found = "LayerNorm, which needs sqrt" if config.norm != "none" else "GELU, which needs erf"
        raise InputError("a layer that needs no function but exp, for exp='table'", found, "use exp='libm'")
    body = c_layer.source(subject) if reading is None else c_form.source(subject, reading)
    bound = None if reading is None else c_form.rounding(subject, reading)
    slopes = None
    if reading is not None and not len(reading.hinges):
        body += "\n" + c_form.gradient_source(reading)
        slopes = c_form.slope_error(subject, reading)
    body = with_macros(body)
    measured: Measured | None = None
    notes: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory() as folder:
        program = _compiled(_file(subject, body, None, bound, slopes, own), Path(folder))
        if program is None:
            notes = ("no C compiler works here: not compiled, not measured",)
        else:
            measured = subject.measure(lambda points: _answers(program, points, subject), x)
            bound = bound and bound.unless_contradicted(measured)
    text = _file(subject, body, measured, bound, slopes, own)
    return Made({"onelayer.c": text.encode()}, measured, bound, notes)


def _compiled(text: str, folder: Path) -> Path | None:
    """The program, with the main function in the file; None without a working compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, program = folder / "onelayer.c", folder / "onelayer"
    source.write_text(text)
    command = [compiler, "-std=c99", "-O2", "-DONELAYER_MAIN", str(source), "-lm", "-o", str(program)]
    return program if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def _answers(program: Path, points: np.ndarray, subject: Subject) -> np.ndarray:
    lines = "\n".join(" ".join(map(repr, row)) for row in points.astype(np.float64).tolist())
    found = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True).stdout
    return np.array(found.split(), dtype=subject.arithmetic.name).reshape(len(points), subject.outputs)


def _file(
    subject: Subject,
    body: str,
    measured: Measured | None,
    bound: Bound | None,
    slopes: float | None,
    own: TableExp | None,
) -> str:
    about = subject.about() | (measured.words() if measured else {})
    c = subject.approximation.certificate
    if bound is not None:
        about |= subject.proved_words(bound)
    if slopes is not None:
        where = f"on the domain{subject.apart}"
        about["slopes"] = f"onelayer_gradient is within {at_most(slopes)} of the layer's slopes {where} (proved)"
        if c.slope is not None and c.verdict == "CERTIFIED":
            total = at_most((c.slope.bound + slopes) * UP)
            about["slopes"] += f", and within {total} of those of f, by the certificate"
    a = subject.arithmetic
    if own is not None:
        if own.error > a.exp_error:
            raise AssertionError("the exponential is worse than certificates assume")
        ulps = at_most(own.error / (2 * a.u), 3)
        about["exp"] = f"within {ulps} units in the last place (proved; bounds assume {a.exp_ulps:g}), no libm"
    lines = "\n".join(f"   {name:<12}{_commented(value)}" for name, value in about.items())
    sizes: dict[str, int | str] = {"inputs": subject.dimension, "outputs": subject.outputs}
    gradient = "onelayer_gradient(" in body
    sizes |= {"gradient": GRADIENT if gradient else "", "declared": DECLARED if gradient else ""}
    main = ASKED if gradient else ANSWERED
    numbers = NUMBERS[a.name]
    functions = LIBM.format(**numbers) if own is None else "#define EXP table_exp\n"
    header, link, lib = ("stdint", "", "") if own is not None else ("math", ": link with -lm", " -lm")
    kinds = {"header": header, "link": link, "lib": lib, "functions": functions}
    source = "" if own is None else own.source() + "\n"
    footer = FOOTER.replace("@main@\n", main.replace("@read@", READ))
    return HEADER.format(about=lines, **sizes, **numbers, **kinds) + source + body + footer


def _commented(text: str) -> str:
    """Text that is safe in a comment: ASCII, without comment marks or trigraphs."""
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("??", "? ?")


HEADER = """/* A single-layer Transformer.

{about}

   onelayer(x, y) evaluates one point, onelayer_batch(count, x, y) several; numbers are in row order.{gradient}
   cc -std=c99 -O2 -c onelayer.c                           for use in a program{link}
   cc -std=c99 -O2 -DONELAYER_MAIN onelayer.c{lib} -o run   ./run reads points from stdin and prints the answers
   Do not use -ffast-math. */

#include <{header}.h>
#include <stddef.h>

typedef {real} real;
{functions}#define INPUTS {inputs}
#define OUTPUTS {outputs}
#define SCAN "{scan}"
#define SHOW "{show}"

void onelayer(const real *x, real *y);
void onelayer_batch(size_t count, const real *x, real *y);
{declared}
"""
LIBM = """#define EXP exp{suffix}
#define SQRT sqrt{suffix}
#define ERF erf{suffix}
"""
GRADIENT = """
   onelayer_gradient(x, dy) gives all slopes at one point: of output o along x[i] in dy[o * INPUTS + i]."""
DECLARED = "void onelayer_gradient(const real *x, real *dy);\n"
READ = """            if (scanf(SCAN, &x[i]) != 1) {
                if (i == 0 && feof(stdin))
                    return 0;
                fprintf(stderr, "asked: %d numbers for each point; found: fewer, or other words\\n", INPUTS);
                return 1;
            }"""
ANSWERED = """int main(void)
{
    real x[INPUTS], y[OUTPUTS];
    for (;;) {
        for (int i = 0; i < INPUTS; i++)
@read@
        onelayer(x, y);
        for (int o = 0; o < OUTPUTS; o++)
            printf(SHOW "%c", y[o], o + 1 < OUTPUTS ? ' ' : '\\n');
    }
}
"""
ASKED = """int main(int count, char **words) /* ./run gradient prints slopes */
{
    (void)words;
    real x[INPUTS], y[OUTPUTS * INPUTS];
    const int numbers = count > 1 ? OUTPUTS * INPUTS : OUTPUTS;
    for (;;) {
        for (int i = 0; i < INPUTS; i++)
@read@
        if (count > 1)
            onelayer_gradient(x, y);
        else
            onelayer(x, y);
        for (int o = 0; o < numbers; o++)
            printf(SHOW "%c", y[o], o + 1 < numbers ? ' ' : '\\n');
    }
}
"""

FOOTER = """
void onelayer_batch(size_t count, const real *x, real *y)
{
    for (size_t i = 0; i < count; i++)
        onelayer(x + i * INPUTS, y + i * OUTPUTS);
}

#ifdef ONELAYER_MAIN
#include <stdio.h>

@main@
#endif
"""
