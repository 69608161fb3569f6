"""C exports timed: with the exponential in the file, with libm's, and a bilinear table of the same error.

Every row is one program, in which the three take turns at the same 1,000 random points; the fastest of 200 turns counts. The
bilinear table has the fewest points per axis at which its error, observed at 9 points of every cell, is at most the layer's
tolerance. Bytes are those of code and constants (libm's own not included). One more program times the exponential alone.

    python benchmarks/measure/c_export.py --page     writes the tables into export.md; needs a C compiler
"""

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.errors import InputError
from onelayer.deployment.export.c_exp import FORMATS, table_exp
from onelayer.deployment.export.c_text import array
from onelayer.layer.arithmetic import ARITHMETICS
from page import markdown, options, page_of, placed
from targets import FRANKE

PAGE = page_of("export.md")
REAL = {"float64": "double", "float32": "float"}
FEWEST, MOST = 16, 4096  # points per axis of a bilinear table
FLAGS = ["-std=c99", "-O2"]
CLOCK = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
static double now(void) { return (double)__builtin_ia32_rdtsc(); }
#else
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
#endif
"""
UNIT = "cycles" if platform.machine() in ("x86_64", "AMD64", "i686") else "ns"
BILINEAR = """typedef {real} real;
{table}
void bilinear(const real *x, real *y)
{{
    const real a = (x[0] - ({low0})) * {scale0}, b = (x[1] - ({low1})) * {scale1};
    int i = (int)a, j = (int)b;
    i = i < 0 ? 0 : i > {last} ? {last} : i;
    j = j < 0 ? 0 : j > {last} ? {last} : j;
    const real s = a - (real)i, t = b - (real)j, *v = TABLE + i * {n} + j;
    y[0] = (1 - s) * ((1 - t) * v[0] + t * v[1]) + s * ((1 - t) * v[{n}] + t * v[{n} + 1]);
}}
"""
TURNS = """
volatile real kept;
int main(void)
{
    double best[%(count)d];
    for (int turn = 0; turn < 200; turn++) {
        double start, taken;
%(turns)s
    }
    for (int i = 0; i < %(count)d; i++)
        printf("%%.17g\\n", best[i] / 1000);
    return 0;
}
"""
TURN = """        start = now();
        for (int p = 0; p < 1000; p++) {{ {call} kept = y[0]; }}
        taken = now() - start;
        best[{i}] = turn == 0 || taken < best[{i}] ? taken : best[{i}];"""


def bilinear(layer: Approximation, dtype: str) -> tuple[str, int]:
    """(source, points per axis) of the smallest table whose observed error is at most the layer's tolerance."""
    domain, tolerance = layer.domain, layer.certificate.tolerance
    fewest, enough = FEWEST, FEWEST
    while table_error(layer, enough, dtype) > tolerance:
        fewest, enough = enough, 2 * enough
        if enough > MOST:
            raise InputError(f"a bilinear table of at most {MOST} points per axis", "more", "a larger tolerance")
    while enough - fewest > 1:
        middle = (fewest + enough) // 2
        fewest, enough = (fewest, middle) if table_error(layer, middle, dtype) <= tolerance else (middle, enough)
    suffix = FORMATS[dtype].suffix
    numbers = {}
    for i, (low, high) in enumerate(zip(domain.lower, domain.upper, strict=True)):
        numbers |= {f"low{i}": low, f"scale{i}": (enough - 1) / (high - low)}
    texts = {name: f"{float(np.dtype(dtype).type(value)).hex()}{suffix}" for name, value in numbers.items()}
    table = array("TABLE", on_grid(layer, enough), suffix)
    return BILINEAR.format(real=REAL[dtype], table=table, n=enough, last=enough - 2, **texts), enough


def on_grid(layer: Approximation, n: int) -> np.ndarray:
    """f at n points per axis, [n, n]."""
    axes = [np.linspace(low, high, n) for low, high in zip(layer.domain.lower, layer.domain.upper, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    assert layer.target is not None
    return np.asarray(layer.target(x), dtype=np.float64).reshape(n, n)


def table_error(layer: Approximation, n: int, dtype: str) -> float:
    """The largest error at 9 points of every cell: corners, midpoints of sides, the centre."""
    v = on_grid(layer, n).astype(dtype).astype(np.float64)
    middle = on_grid(layer, 2 * n - 1)
    rough = np.empty_like(middle)
    rough[::2, ::2] = v
    rough[1::2, ::2] = (v[1:] + v[:-1]) / 2
    rough[:, 1::2] = (rough[:, 2::2] + rough[:, :-2:2]) / 2
    return float(np.abs(rough - middle).max())


def compiled(folder: Path, name: str, text: str, *flags: str) -> Path:
    """An object file."""
    (folder / f"{name}.c").write_text(text)
    subprocess.run([compiler(), *FLAGS, *flags, "-c", f"{name}.c", "-o", f"{name}.o"], cwd=folder, check=True)
    return folder / f"{name}.o"


def timed(folder: Path, head: str, calls: Sequence[str], objects: Sequence[Path]) -> list[float]:
    """Clock units per call, the calls in turns."""
    turns = "\n".join(TURN.format(i=i, call=call) for i, call in enumerate(calls))
    main = compiled(folder, "main", CLOCK + head + TURNS % {"count": len(calls), "turns": turns})
    subprocess.run([compiler(), main, *objects, "-lm", "-o", folder / "main"], check=True)
    return [
        float(line)
        for line in subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.split()
    ]


def bytes_of(path: Path) -> int:
    """Code and constants of an object."""
    line = subprocess.run(["size", path], capture_output=True, text=True, check=True).stdout.splitlines()[1]
    return sum(map(int, line.split()[:2]))


def layer_row(name: str, layer: Approximation, folder: Path) -> list[str]:
    dtype = str(layer.model.W_E.dtype).removeprefix("torch.")
    objects = []
    for exp in ("table", "libm"):
        ol.export(layer, folder / f"{exp}.c", to="c", exp=exp, points=1000, overwrite=True)  # type: ignore[arg-type]
        renamed = [f"-Donelayer{end}={exp}{end}" for end in ("", "_batch", "_gradient")]
        objects.append(compiled(folder, exp, (folder / f"{exp}.c").read_text(), *renamed))
    source, n = bilinear(layer, dtype)
    objects.append(compiled(folder, "bilinear", source))
    x = layer.domain.points(np.random.default_rng(0).random((1000, 2)))
    names = ("table", "libm", "bilinear")
    head = f"typedef {REAL[dtype]} real;\n{array('X', x, FORMATS[dtype].suffix)}static real y[1];\n"
    head += "".join(f"void {name}(const real *x, real *y);\n" for name in names)
    table, libm, grid = timed(folder, head, [f"{name}(X + 2 * p, y);" for name in names], objects)
    sizes = [f"{bytes_of(path):,}" for path in objects]
    return [
        name, dtype, f"{layer.certificate.bound:.2g}", f"{table:,.0f}", f"{table / libm:.2f}", f"{table / grid:.1f}",
        f"{n} x {n}", sizes[0], sizes[1], sizes[2],
    ]  # fmt: skip


def exp_row(dtype: str, folder: Path) -> list[str]:
    """The exponential alone, at arguments from -20 to 0."""
    own, u, suffix = table_exp(dtype), ARITHMETICS[dtype].u, FORMATS[dtype].suffix
    x = np.random.default_rng(0).uniform(-20, 0, 1000)
    head = f"#include <math.h>\n#include <stdint.h>\ntypedef {REAL[dtype]} real;\n{own.source()}"
    head += f"{array('X', x, suffix)}static real y[1];\n"
    table, libm = timed(folder, head, ["y[0] = table_exp(X[p]);", f"y[0] = exp{suffix}(X[p]);"], [])
    proved = f"{own.error / (2 * u):.3f}"
    return [dtype, proved, f"{len(own.table)} numbers, degree {own.format.degree}", f"{table:.1f}", f"{libm:.1f}"]


def layers() -> dict[str, Callable[[], Approximation]]:
    sines = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
    return {
        "sin x1 + sin x2": lambda: ol.build(*sines, 1e-3),
        "sin x1 + sin x2, closer": lambda: ol.build(*sines, 1e-5),
        "sin x1 + sin x2, float32": lambda: ol.build(*sines, 1e-3, dtype="float32"),
        "Franke": lambda: ol.build(FRANKE, [(0, 1)] * 2, 1e-3),
    }


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        raise InputError("a C compiler", "none", "install gcc or clang")
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into export.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = [exp_row(dtype, folder) for dtype in REAL]
        rows = [layer_row(name, make(), folder) for name, make in layers().items()]
    columns = ["exp", "units in the last place (proved)", "table and polynomial", f"{UNIT}, table", f"{UNIT}, libm"]
    text = markdown(columns, alone) + "\n\n"
    columns = [
        "layer",
        "dtype",
        "bound",
        f"{UNIT} a point",
        "ratio to libm's exp",
        "ratio to bilinear",
        "bilinear table",
    ]
    text += markdown([*columns, "bytes", "bytes, libm's exp", "bytes, bilinear"], rows)
    print(text)
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), "c-export", text))


if __name__ == "__main__":
    main()
