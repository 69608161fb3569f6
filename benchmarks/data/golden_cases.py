"""The golden corpus: about 90 commands that write a folder, or refuse to, and always write the same one.

Each has its own name, by which `golden.py --only` asks for it. Every search here ends by itself long before its seconds are
over, so that a busy machine builds the same weights. `points.csv`, `text.txt`, `labels.csv` and `smooth.csv` are made by `files`.
"""

import csv
import math
import shlex
from dataclasses import dataclass
from pathlib import Path

import folders
from targets import named

SECONDS = 600  # of a build; never needed
FEYNMAN = Path(__file__).resolve().parents[2] / "src" / "onelayer" / "experiments" / "study" / "builtin" / "feynman.csv"
NAMED = {  # the tolerance of each named target; smaller where that is quick
    "sin-sum": 1e-6,
    "runge-1d": 1e-6,
    "branin": 1e-5,
    "runge-2d": 1e-5,
    "sine-of-product": 1e-4,
    "franke": 1e-3,
    "ishigami": 1e-3,
    "runge-3d": 1e-2,
    "gauss-4d": 1e-2,
    "additive-8d": 1e-4,
    "abs": 1e-6,
    "max": 1e-6,
    "cyclic": 1e-5,
}
SAMPLE = {  # equations of the Feynman hundred: 1 % or 0.1 % of their ranges
    "I.6.2a": 0.00237,
    "I.6.2": 0.00237,
    "I.6.2b": 0.00345,
    "I.8.14": 0.0565,
    "I.12.1": 0.24,
    "I.14.3": 1.24,
    "I.26.2": 0.0314,
    "I.27.6": 0.0233,
    "I.34.27": 0.00382,
    "I.43.31": 0.124,
    "II.8.31": 0.062,
    "II.11.28": 0.0015,
    "II.24.17": 0.0471,
    "II.34.2": 0.062,
    "II.34.29a": 0.00197,
    "III.17.37": 0.385,
}
TRAINED = "--eps 0.5 --heads 1 --d-model 4 --width 4 --steps 200 --seed 1 --no-report"
OTHERS = (
    # -- float32, bfloat16, int8
    ("float32-product", 'build "x1*x2" --domain 0:1 --eps 1e-3 --dtype float32'),
    ("float32-sines", 'build "sin(x1) + sin(x2)" --domain "0:2*pi" --eps 1e-3 --dtype float32'),
    ("float32-runge", 'build "1/(1 + 25*x1^2)" --domain=-1:1 --eps 1e-3 --dtype float32'),
    ("bfloat16-product", 'build "x1*x2" --domain 0:1 --eps 1e-1 --dtype bfloat16'),
    ("bfloat16-sine", 'build "sin(x1)" --domain 0:pi --eps 5e-2 --dtype bfloat16'),
    ("int8-product", 'build "x1*x2" --domain 0:1 --eps 5e-2 --weights int8'),
    ("int8-sine", 'build "sin(x1)" --domain 0:pi --eps 5e-2 --weights int8'),
    ("int8-exp", 'build "exp(x1)" --domain 0:1 --eps 5e-2 --weights int8'),
    # -- kinks, jumps
    ("kink-abs", 'build "abs(x1)" --domain=-1:1 --eps 1e-6'),
    ("kink-smooth", 'build "abs(x1 - x2) + sin(x1)" --domain 0:1 --eps 1e-3'),
    ("kink-max", 'build "abs(x1 - x2) + max(x1, x2)" --domain 0:1 --eps 1e-3'),
    ("kink-inside", 'build "exp(-abs(x1 - 0.5))" --domain 0:1 --eps 1e-2'),
    ("kink-float32", 'build "abs(x1 - x2)" --domain 0:1 --eps 1e-3 --dtype float32'),
    ("jump", 'build "where(x1 < 0.5, 0, 1)" --domain 0:1 --eps 1e-2 --margin 0.05'),
    # -- slopes, properties, parts of a box, relative
    ("slope-sine", 'build "sin(x1)*x2" --domain 0:1 --eps 1e-3 --slope-eps 1e-2'),
    ("slope-exp", 'build "exp(x1)" --domain 0:1 --eps 1e-4 --slope-eps 1e-2'),
    ("slope-cosine", 'build "cos(x1)" --domain 0:3 --eps 1e-3 --slope-eps 1e-1'),
    ("slope-float32", 'build "x1^2" --domain 0:1 --eps 1e-2 --slope-eps 1e-1 --dtype float32'),
    ("property-increasing", 'build "exp(x1)" --domain 0:1 --eps 1e-3 --property "increasing in x1"'),
    ("property-convex", 'build "x1^2 + x2" --domain 0:1 --eps 1e-2 --property "convex in x1"'),
    ("within-disc", 'build "x1*x2" --domain=-1:1 --within "x1^2 + x2^2 <= 1" --eps 1e-3'),
    ("relative", 'build "2 + x1*x2" --domain 0:1 --eps 1e-3 --relative'),
    ("two-outputs", 'build "x1*x2; x1 - x2^2" --domain 0:1 --eps 1e-3'),
    ("sphere", 'build "sqrt(1 + x1^2 + x2^2 + x3^2 + x4^2)" --domain 0:1 --eps 1e-2'),
    # -- constructions, layouts, other attention
    ("representative", 'build "sin(3*x1)" --domain 0:1 --eps 1e-2 --method representative'),
    ("solved", 'build "sin(x1)*x2" --domain 0:1 --eps 1e-3 --method solved'),
    ("solved-hinges", 'build "abs(x1 - 0.3) + x1^2" --domain 0:1 --eps 2e-2 --method solved --hinges 4'),
    ("memory", 'build "sin(x1)*x2" --domain 0:1 --eps 1e-2 --method solved --construction memory'),
    ("symmetric", 'build "x1*x2 + x1 + x2" --domain 0:1 --eps 1e-2 --symmetric'),
    ("units", 'build "sin(x1)" --domain 0:pi --eps 1e-3 --units 3'),
    ("wide", 'build "x1*x2" --domain 0:1 --eps 1e-3 --layout wide'),
    ("heads", 'build "x1*x2" --domain 0:1 --eps 1e-3 --layout heads'),
    ("linear", 'build "x1*x2" --domain 0:1 --eps 1e-2 --attention linear'),
    ("sigmoid", 'build "x1*x2" --domain 0:1 --eps 1e-2 --attention sigmoid'),
    ("sparsemax", 'build "x1*x2" --domain 0:1 --eps 1e-2 --attention sparsemax'),
    ("local", 'build "sin(x1)" --domain 0:1 --eps 1e-2 --attention local --window 1'),
    # -- composed proofs
    ("composed-exp", 'build "exp(-x1*x2)*x3" --domain 0:1 --eps 1e-2'),
    ("composed-product", 'build "x1*x2*x3*x4" --domain 0:1 --eps 1e-2'),
    ("composed-cone", 'build "sqrt((a - b)^2 + (c - d)^2)" --domain 1:5 --eps 0.05'),
    ("composed-gauss", 'build "exp(-(x1^2 + x2^2 + x3^2))" --domain=-1:1 --eps 1e-2'),
    ("composed-five", 'build "sin(x1*x2) + x3*x4*x5" --domain 0:1 --eps 5e-2'),
    # -- verdicts other than CERTIFIED, and refusals
    ("refuted", 'build "sin(9*x1)*cos(9*x2)" --domain 0:1 --eps 1e-6 --units 3'),
    ("refused-domain", 'build "log(x1)" --domain=-1:1 --eps 1e-2'),
    ("refused-word", 'build "zeta(x1)" --domain 0:1 --eps 1e-2'),
    ("refused-samples", "build points.csv --eps 1 --lipschitz 1"),
    ("refused-sets", 'sets "sum(x)*mean(x)" --eps 1e-13 --longest 4096'),
    # -- samples
    ("samples", "build smooth.csv --eps 0.5 --lipschitz 1,1"),
    ("memorize", "memorize points.csv --target y"),
    ("memorize-float32", "memorize points.csv --target y --dtype float32"),
    ("memorize-labels", "memorize labels.csv --target kind --labels"),
    # -- trained
    ("trained-gelu", f'train "x1^2" --domain 0:1 {TRAINED} --activation gelu --certify 600'),
    ("trained-relu", f'train "x1^2" --domain 0:1 {TRAINED} --activation relu --certify 600'),
    ("trained-silu", f'train "x1*x2" --domain 0:1 {TRAINED} --activation silu --certify 600'),
    ("trained-float64", f'train "sin(x1)" --domain 0:1 {TRAINED} --dtype float64 --certify 600'),
    ("trained-observed", f'train "x1 - x2" --domain 0:1 {TRAINED} --optimizer sgd'),
    # -- gallery
    ("gallery-sort", "gallery sort --n 4"),
    ("gallery-maximum", "gallery maximum --n 8"),
    ("gallery-median", "gallery median --n 5"),
    ("gallery-top-k", "gallery top_k --n 5 --k 2 --dtype float32 --tolerance 1e-3"),
    ("gallery-running-max", "gallery running_max --n 6"),
    ("gallery-clip", "gallery clip --n 3"),
    ("gallery-affine", "gallery affine --matrix '1,2; 3,4'"),
    ("gallery-mean", "gallery mean --n 10"),
    ("gallery-deep-set", "gallery deep_set"),
    ("gallery-permute", "gallery permute --order 2,0,1"),
    ("gallery-histogram", "gallery histogram --n 8"),
    ("gallery-majority", "gallery majority --n 9"),
    ("gallery-parity", "gallery parity --n 5"),
    ("gallery-copy-where", "gallery copy_where --n 5 --vocabulary 4"),
    # -- sequences of any length
    ("sequences-maximum", "gallery maximum --longest 100"),
    ("sequences-mean", "gallery mean --longest 100 --dtype float32"),
    ("sequences-running-mean", "gallery running_mean --longest 100"),
    ("sequences-shift", "gallery shift --longest 30"),
    ("sequences-sort", "gallery sort --longest 5"),
    ("sequences-histogram", "gallery histogram --longest 30 --vocabulary 5"),
    ("sequences-look-up", "gallery look_up --longest 20 --keys 3 --values 3"),
    ("sequences-depth", "gallery depth --longest 40"),
    ("sequences-balanced", "gallery balanced --longest 12"),
    ("sequences-induction", "gallery induction --longest 6 --vocabulary 5"),
    ("sequences-composition", "gallery composition --longest 12 --vocabulary 3"),
    # -- sets, text
    ("sets-maximum", 'sets "max(x)" --eps 1e-3'),
    ("sets-square", 'sets "sqrt(mean(x^2))" --eps 1e-2 --longest 100'),
    ("sets-centred", 'sets "x - mean(x)" --eps 1e-2 --longest 100'),
    ("sets-float32", 'sets "max(x) - min(x)" --eps 1e-2 --longest 50 --dtype float32'),
    ("text-bigrams", "language text.txt --order 2 --longest 50"),
    ("text-trigrams", "language text.txt --order 3 --longest 30"),
    ("text-words", "language text.txt --order 2 --tokens words --longest 50 --dtype float32 --eps 1e-3"),
)


@dataclass(frozen=True)
class Case:
    """A command of `onelayer`, without the folder to write."""

    name: str
    command: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)

    @property
    def float64(self) -> bool:
        return not {"float32", "bfloat16", "int8"} & set(self.words) and self.words[0] != "train"


def of_formula(name: str, formula: str, domain: str, rest: str) -> Case:
    return Case(name, shlex.join(["build", formula, f"--domain={domain}"]) + f" {rest}")


def of_named(name: str, tolerance: float) -> Case:
    entry = named(name)
    sides = ", ".join(f"{low}:{high}" for low, high in entry.domain)
    more = f" --shape {entry.shape[0]},{entry.shape[1]}" if entry.shape else ""
    more += f" --output-shape {','.join(map(str, entry.output_shape))}" if entry.output_shape else ""
    return of_formula(f"named-{name}", entry.formula, sides, f"--eps {tolerance:g}{more}")


def of_feynman() -> list[Case]:
    with FEYNMAN.open(newline="") as file:
        rows = {row[0]: row[1:] for row in csv.reader(file)}
    found = []
    for name, tolerance in SAMPLE.items():
        formula, *ends = rows[name]
        sides = ", ".join(f"{v}={low}:{high}" for v, low, high in zip(*[iter(ends)] * 3, strict=True) if v)
        found.append(of_formula(f"feynman-{name}", formula, sides, f"--eps {tolerance:g}"))
    return found


def cases() -> list[Case]:
    """All of them; builds take their time limit from here, and write no report."""
    found = [*(of_named(*each) for each in NAMED.items()), *of_feynman(), *(Case(*each) for each in OTHERS)]
    rest = f" --seconds {SECONDS} --no-report"
    return [Case(c.name, c.command + rest) if c.words[0] == "build" else c for c in found]


def files(folder: Path) -> None:
    """The files that the commands read, in this folder."""
    folders.files(folder)
    rows = "\n".join(f"{i % 5},{i // 5},{'ab'[i * i % 7 % 2]}" for i in range(20))
    smooth = "\n".join(f"{a / 8},{b / 8},{math.sin(a / 8) * (b / 8):.9f}" for a in range(9) for b in range(9))
    (folder / "smooth.csv").write_text(f"a,b,y\n{smooth}\n")
    (folder / "labels.csv").write_text(f"u,v,kind\n{rows}\n")
