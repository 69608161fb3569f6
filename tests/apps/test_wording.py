"""What the command line says to bad input, word by word: one line, in the words of its own options."""

import re
import shlex

import pytest

from onelayer.apps.cli import main
from onelayer.apps.cli.wording import in_options

BUILD = "onelayer build FORMULA --eps … --out …"
START = "--domain 0:1 --eps 0.1 --out f"
LINES = {
    f"build 'x y' {START}": "asked: a formula such as x*exp(-y^2); found: no operator in 'x y'; change: write x*y",
    f"build 'x1 + x' {START}": (
        "asked: a formula such as x*exp(-y^2); found: 'x' beside x1 (did you mean x2?); change: write x1 + x2"
    ),
    f"build 'x1 + y' {START} --domain 0:1,0:2": (
        "asked: a formula such as x*exp(-y^2); found: 'y' beside x1 (did you mean x2?); change: write x1 + x2"
    ),
    f"build '1/2x + sin x' {START}": (
        "asked: a formula such as x*exp(-y^2); found: (1) '2x' after /, which has two readings (2) 'sin' without brackets; "
        "change: write 1/2*x + sin(x), or with the whole divisor in brackets"
    ),
    f"build x {START} --where 'x < 1'": (
        f"asked: {BUILD}; found: no such option: --where; change: write --within, or see onelayer build --help"
    ),
    f"build -ei(-x) {START}": (
        f"asked: {BUILD}; found: no such option: -e; change: write a formula that starts with - in brackets, "
        "or see onelayer build --help"
    ),
    "plan x --domain 0:1 --epsilon 0.1": (
        "asked: onelayer plan FORMULA --domain … --eps …; found: no such option: --epsilon; "
        "change: write --tolerance, or see onelayer plan --help"
    ),
    f"build x {START} --method best": (
        f"asked: {BUILD}; found: invalid value for '--method': 'best' is not one of 'polished', 'solved', "
        "'representative'; change: see onelayer build --help"
    ),
    f"build x {START} --seconds soon": (
        f"asked: {BUILD}; found: invalid value for '--seconds': not a number; change: see onelayer build --help"
    ),
    "build x": (f"asked: {BUILD}; found: missing option '--eps' / '--tolerance'; change: see onelayer build --help"),
    "foo": "asked: onelayer COMMAND; found: no such command 'foo'; change: see onelayer --help",
    f"build x {START} --domain 0:1,0:2": (
        "asked: 1 side, one per variable; found: 2 sides for x; change: leave out 1 side, or name all of them"
    ),
    f"build x {START} --within x": (
        "asked: a condition such as x^2 + y^2 <= 1; found: 'x', not a comparison; change: compare two sides, as in x < 0"
    ),
    f"build x {START} --units 0": (
        "asked: units, a whole number from 1 to 50000; found: 0; change: choose a number in that range"
    ),
    f"build x {START} --symmetric --layout wide": (
        "asked: --symmetric; found: --layout wide; change: use one without the other"
    ),
    f"build x {START} --construction memory --layout wide": (
        "asked: --construction memory; found: --layout wide; change: use --layout token: there is one data token"
    ),
    f"build x {START} --hinges 3": "asked: --method polished; found: --hinges 3; change: use --method solved",
    f"build x {START} --device gpu": (
        "asked: the device cpu or cuda, present on this machine; found: 'gpu'; change: use --device cpu"
    ),
    f"build x {START} --shape 3,2": (
        "asked: --shape (n, d) with n·d = 1, the sides of the domain; found: (3, 2); change: make the two agree"
    ),
    f"build x {START} --output-shape 3,2": (
        "asked: --output-shape for 1 output; found: (3, 2); change: make the two agree"
    ),
    "build k*T --domain 0:1,0:2 --eps 0.1 --out f": (
        "asked: a domain that says which side is whose; found: different sides for T, k; "
        "change: name the sides in the domain: T, k"
    ),
    "build x --domain 0:y --eps 0.1 --out f": (
        "asked: a number or a constant formula as an end of x; found: the unknown name 'y'; "
        "change: use numbers, pi and e, no variables"
    ),
    "train x --domain 0:1 --out f --loss cross_entropy": (
        "asked: onelayer train FORMULA --domain … --out …; found: invalid value for '--loss': 'cross_entropy' is not one of "
        "'mse', 'sup'; change: see onelayer train --help"
    ),
    "eval f one": (
        "asked: numbers for the point; found: the unknown name 'one'; change: give numbers such as 1.5, -2e-3 or pi/2"
    ),
    "study --axis eps=0.1,0.2": (
        "asked: axes of construct: target, formula, domain, margin, tolerance, method, construction, dtype, units, seed, "
        "seconds; found: 'eps'; change: did you mean tolerance?"
    ),
    "check f": "asked: a model folder at f; found: no such folder; change: name a folder that `build` wrote",
    "prove f 'T <= 2'": "asked: a model folder at f; found: no such folder; change: name a folder that `build` wrote",
    "prove f": (
        "asked: onelayer prove FOLDER PROPERTY; found: missing argument 'PROPERTY'; change: see onelayer prove --help"
    ),
    "supremum '' x": (
        'asked: a formula or a model folder first; found: empty text; change: write for instance "sin(x)"'
    ),
    "supremum f": (
        "asked: a model folder, or two formulas; found: 'f' alone, which is no folder; "
        "change: name a folder that `build` wrote, or give two formulas and --domain"
    ),
    "supremum f x": (
        "asked: a domain for the two formulas, or a model folder; found: neither: no folder 'f'; "
        'change: give --domain, such as --domain "0:1", or name a folder that `build` wrote'
    ),
    "supremum x x^2 --domain 0:1 --accuracy 1e300": (
        "asked: --accuracy, a share above 0 and below 1e6; found: 1e+300; change: give for instance 0.01 for 1%"
    ),
    f"build x {START} --slope-eps -1": (
        "asked: --slope-eps, a tolerance above 0 (1e-290 to 1e290); found: -1.0; change: give for instance 1e-3"
    ),
    f"build 'abs(x)' {START} --domain -1:1 --slope-eps 0.1": (
        "asked: a margin around the kinks of f, where it has no slope; found: --margin 0; "
        "change: give for instance --margin 0.01"
    ),
    f"build x {START} --property 'T <= 1 and T >= 0'": (
        "asked: one property at a time; found: 'T <= 1 and T >= 0'; change: ask for each on its own"
    ),
}


@pytest.mark.parametrize("command", LINES)
def test_one_line(command, capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)
    status = main(shlex.split(command))
    printed = capsys.readouterr()
    assert (status, printed.out, printed.err) == (2, "", LINES[command] + "\n")
    assert not list(tmp_path.iterdir())


def test_only_options_are_translated():
    flags = frozenset(["--method", "--seed", "--symmetric"])
    assert in_options("use method='solved' or `method`", flags) == "use --method solved or --method"
    assert in_options("symmetric=True, seed=3", flags) == "--symmetric, --seed 3"
    assert in_options("margin=0.01, `slope_tolerance`", frozenset(["--margin", "--slope-eps"])) == (
        "--margin 0.01, --slope-eps"
    )
    assert (
        in_options("init='random', `build`, T=280:350, seed=0:1", flags)
        == "init='random', `build`, T=280:350, seed=0:1"
    )


def test_force_is_the_word_for_overwriting(capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)
    build = shlex.split(f"build x {START} --method representative --no-report --quiet")
    assert main(build) == 0
    assert main(build) == 2
    err = capsys.readouterr().err
    assert "replace the model in it and nothing else: --force" in err
    assert "overwrite" not in err


@pytest.mark.parametrize("command", [["gallery"], ["study", "--list"]])
def test_lists_are_no_wider_than_the_terminal(command, capsys, monkeypatch, as_user):
    assert main(command) == 0
    plain = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.split() == plain.split()
    for option in re.findall(r"\[--.*?\]", plain):
        assert option in printed


def test_notes_speak_of_options(capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i / 20},{i / 10}\n" for i in range(21)))
    assert main(shlex.split("build data.csv --eps 0.1 --out f --no-report")) == 1
    printed = capsys.readouterr().out
    assert "declare --lipschitz" in printed
    assert "`lipschitz`" not in printed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["study", "--list", "extra"], "asked: --list alone; found: extra; change: leave it out"),
        (["study", "--axis", "target"], "--axis tolerance=0.1,0.01"),
        (["eval", "no-folder", "--input", "", "--output", "x"], "asked: a path for --input; found: ''"),
    ],
)
def test_refusals_that_misled(words, told, capsys, as_user):
    assert main(words) == 2
    assert told in capsys.readouterr().err
