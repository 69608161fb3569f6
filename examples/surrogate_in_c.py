"""From a formula to C: a certified layer for a microcontroller, in one file without dependencies.

    python examples/surrogate_in_c.py

What you learn: the period of a pendulum grows with its amplitude (an elliptic integral; here three steps of the
arithmetic–geometric mean, written as a formula). A small layer is CERTIFIED against the formula, written as one C99 file with
the weights in it, compiled, and run beside the Python model. The header of the file states what is proved about the C code.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import onelayer as ol
from onelayer.common.table import Table

# period / (2π √(length/g)) = 1 / AGM(1, cos(angle/2)); after three steps the mean is within 5e-9 of it up to 2 rad
MEAN, ROOT = "(1 + cos(angle/2))/2", "sqrt(cos(angle/2))"
PERIOD = f"2*pi*sqrt(length/9.81) / (({MEAN} + {ROOT})/4 + sqrt({MEAN}*{ROOT})/2)"
MAIN = """
#include <stdio.h>
int main(void) {
    double x[2], y[1];
    while (scanf("%lf %lf", x, x + 1) == 2) { onelayer(x, y); printf("%.17g\\n", y[0]); }
    return 0;
}
"""


def main() -> int:
    approx = ol.build(PERIOD, {"length": (0.5, 1.5), "angle": (0, 2)}, tolerance=1e-4)
    c = approx.certificate
    compiler = shutil.which("cc")
    if compiler is None:
        print(f"{c.verdict} within {c.bound:.3g} s; no C compiler (cc) here: nothing to run")
        return 0
    points = np.array([[0.5, 0.0], [0.994, 0.1], [1.0, 1.0], [1.2, 1.9], [1.5, 2.0]])
    with tempfile.TemporaryDirectory() as place:
        source, program = Path(place) / "pendulum.c", Path(place) / "pendulum"
        print(ol.export(approx, source, to="c"))
        source.write_text(source.read_text() + MAIN)
        subprocess.run([compiler, "-O2", str(source), "-o", str(program), "-lm"], check=True)
        inputs = "\n".join(f"{a!r} {b!r}" for a, b in points.tolist())
        answers = subprocess.run(
            [str(program)], input=inputs, capture_output=True, text=True, check=True
        ).stdout.split()
    exact = approx.target(points)[:, 0]
    table = Table("Period of a pendulum in seconds", ("length", "angle", "formula", "C", "Python", "C − formula"))
    for point, f, in_c, here in zip(points, exact, map(float, answers), approx(points), strict=True):
        row = (f"{point[0]:g} m", f"{point[1]:g} rad", f"{f:.6f}", f"{in_c:.6f}", f"{here:.6f}", f"{in_c - f:.1e}")
        table.rows.append(row)
    print(table)
    worst = float(np.abs(np.array(answers, dtype=float) - exact).max())
    print(f"{c.verdict} within {c.bound:.3g} s; largest error of the C program here {worst:.2g} s")
    return 0 if c.verdict == "CERTIFIED" and worst <= c.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
