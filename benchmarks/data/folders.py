"""A command for every kind of folder that the command line writes; the independent checker should say VALID to all of them.

`points.csv` and `text.txt` are made by `files`. Not here: `distill`, whose folders claim nothing (answers are observed), and
`certify`, which judges a folder that another command wrote.
"""

import shlex
from pathlib import Path

import numpy as np

DECIDED = (
    'build "sin(x1) + sin(x2)" --domain "0:2*pi" --eps 1e-4',
    'build "x1*x2" --domain 0:1 --eps 1e-3 --dtype float32',
    'build "exp(-x1*x2)*x3" --domain 0:1 --eps 1e-2',
    'build "x1*x2*x3*x4" --domain 0:1 --eps 1e-2',
    'build "abs(x1 - x2) + max(x1, x2)" --domain 0:1 --eps 1e-3',
    'build "sqrt(1 + x1^2 + x2^2 + x3^2 + x4^2)" --domain 0:1 --eps 1e-2',
    'build "where(x1 < 0.5, 0, 1)" --domain 0:1 --eps 1e-2 --margin 0.05',
    'build "x1*x2" --domain=-1:1 --within "x1^2 + x2^2 <= 1" --eps 1e-3',
    'build "2 + x1*x2" --domain 0:1 --eps 1e-3 --relative',
    'build "sin(x1)*x2" --domain 0:1 --eps 1e-3 --slope-eps 1e-2',
    'build "exp(x1)" --domain 0:1 --eps 1e-3 --property "increasing in x1"',
    'build "sin(3*x1)" --domain 0:1 --eps 1e-2 --method representative',
    'build "x1*x2; x1 - x2^2" --domain 0:1 --eps 1e-3',
    "memorize points.csv --target y",
    'train "x1^2" --domain 0:1 --eps 0.5 --heads 1 --d-model 4 --width 4 --steps 300 --certify 20 --no-report',
    'train "x1^2" --domain 0:1 --eps 0.5 --heads 1 --d-model 4 --width 4 --steps 300 --activation gelu --certify 20 --no-report',
    "gallery sort --n 4",
    "gallery median --n 5",
    "gallery clip --n 3",
    "gallery affine --matrix '1,2; 3,4'",
    "gallery deep_set",
    "gallery permute --order 2,0,1",
    "gallery histogram --n 8",
    "gallery majority --n 9",
    "gallery copy_where --n 5 --vocabulary 4",
    "gallery maximum --longest 100",
    "gallery running_mean --longest 100",
    "gallery shift --longest 30",
    "gallery sort --longest 5",
    "gallery histogram --longest 30 --vocabulary 5",
    "gallery first_occurrence --longest 30 --vocabulary 5",
    "gallery depth --longest 40",
    "gallery balanced --longest 12",
    "gallery induction --longest 6 --vocabulary 5",
    'sets "max(x)" --eps 1e-3',
    'sets "sqrt(mean(x^2))" --eps 1e-2 --longest 100',
    "language text.txt --order 2 --longest 50",
)


def files(folder: Path) -> None:
    """The files that the commands read, in this folder."""
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{v:.6f}" for v in row) for row in rng.random((40, 3)))
    (folder / "points.csv").write_text(f"a,b,y\n{rows}\n")
    (folder / "text.txt").write_text("the cat sat on the mat and the dog sat on the cat\n" * 4)


def words_of(command: str) -> list[str]:
    return shlex.split(command)
