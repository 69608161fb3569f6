"""The house: its rooms, the order of imports between them, names that are not mistaken for one another."""

import ast
import shutil
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

import onelayer

SOURCE = Path(onelayer.__file__).parent
ROOT = SOURCE.parents[1]
LEVELS = [  # imports go down only, that is, to the left
    {"common"},
    {"formula"},
    {"target", "model"},
    {"layer"},
    {"proof"},
    {"approximation"},
    {"sequence_layer"},
    {"language_model"},
    {"construction", "deployment"},
    {"pipeline"},
    {"training"},
    {"experiments"},
    {"views"},
    {"apps"},
]
ROOMS = [name for level in LEVELS for name in sorted(level) if (SOURCE / name).is_dir()]
# The exceptions: an approximation saves, evaluates and shows itself, a study shows itself; they import for that when called.
WHEN_CALLED = {
    ("approximation", "deployment"),
    ("sequence_layer", "deployment"),
    ("approximation", "views"),
    ("sequence_layer", "views"),
    ("experiments", "views"),
}
ALONE = {"checker.py", "loader.py", "wrapper.py"}  # files that others take with them, on their own


def imports(source: Path, file: Path) -> list[tuple[str, bool]]:
    """(room that is imported, whether when the module is loaded) of every import of our own in a file."""
    package = file.relative_to(source).parent.parts
    tree = ast.parse(file.read_text())
    later = {id(node) for tree in ast.walk(tree) if isinstance(tree, ast.FunctionDef) for node in ast.walk(tree)}
    typing = {id(node) for tree in ast.walk(tree) if _is_type_checking(tree) for node in ast.walk(tree)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            absolute = (node.module or "").split(".")
            path = absolute[1:] if absolute[0] == "onelayer" and not node.level else None
            if node.level:
                path = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
            if path is not None:
                names = [path[0]] if path else [alias.name for alias in node.names]
                found += [(name, id(node) not in later | typing) for name in names]
        elif isinstance(node, ast.Import):
            ours = [a.name.split(".") for a in node.names if a.name.split(".")[0] == "onelayer"]
            found += [(name[1] if len(name) > 1 else "apps", id(node) not in later) for name in ours]
    return found


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def level_of(name: str) -> int:
    return next((i for i, level in enumerate(LEVELS) if name in level), -1)


def upward(source: Path) -> list[str]:
    """Imports against the order, sideways ones included."""
    wrong = []
    for file in sorted(source.rglob("*.py")):
        own = file.relative_to(source).parts[0].removesuffix(".py")
        for other, at_once in imports(source, file):
            allowed = own in ("__init__", other) or level_of(other) < level_of(own)
            allowed |= (own, other) in WHEN_CALLED and not at_once
            allowed |= other == "checker" and own == "apps"
            if not allowed and other != "__version__":
                wrong.append(f"{file.relative_to(source)} imports {other}")
    return wrong


def test_the_top_has_twelve_rooms_and_six_doors():
    found = {path.name for path in SOURCE.iterdir()} - {"__pycache__"}
    assert len(ROOMS) == 12
    assert found == {
        *ROOMS,
        "__init__.py",
        "pipeline.py",
        "approximation.py",
        "sequence_layer.py",
        "language_model.py",
        "checker.py",
        "py.typed",
    }


def test_imports_go_down_only():
    assert not upward(SOURCE)


FORBIDDEN = {
    "common/table.py": ("from ..formula import parse", "formula"),
    "model/transformer.py": ("from ..target.target import Target", "target"),
    "construction/plan.py": ("from ..deployment.folder import load", "deployment"),
    "proof/decision.py": ("def f():\n    from ..pipeline import build", "pipeline"),
    "checker.py": ("from .formula import parse", "formula"),
    "approximation.py": ("from .deployment.folder import save", "deployment"),
    "views/plot.py": ("from onelayer.apps.cli import main", "apps"),
    "training/descent.py": ("from .. import experiments", "experiments"),
}


@pytest.mark.long
def test_forbidden_imports_are_found_in_a_scratch_copy(tmp_path):
    scratch = tmp_path / "onelayer"
    shutil.copytree(SOURCE, scratch, ignore=shutil.ignore_patterns("__pycache__"))
    for file, (line, _) in FORBIDDEN.items():
        (scratch / file).write_text(f"{(scratch / file).read_text()}\n{line}\n")
    assert sorted(upward(scratch)) == sorted(f"{file} imports {room}" for file, (_, room) in FORBIDDEN.items())


def test_the_checker_stands_alone_and_the_model_knows_nothing():
    assert not imports(SOURCE, SOURCE / "checker.py")
    for file in (SOURCE / "model").rglob("*.py"):
        assert {room for room, _ in imports(SOURCE, file)} <= {"model", "common"}


def test_every_room_says_what_it_is_for():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for room in ROOMS:
        first = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text()))
        assert first is not None
        assert first.splitlines()[0] in page, room


def test_no_two_classes_share_a_name():
    homes = defaultdict(list)
    for file in SOURCE.rglob("*.py"):
        if file.name not in ALONE:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(str(file.relative_to(SOURCE)))
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def alike(one: str, two: str) -> bool:
    """Whether two names differ by an ending, or by one letter."""
    short, long = sorted((one, two), key=len)
    if long.startswith(short) and long[len(short) :] in ("s", "es", "d", "ed", "r", "er", "ing", "ion", "ment"):
        return True
    if long.startswith(short[:-1]) and short[-1:] == "e" and long[len(short) - 1 :] in ("ing", "ion", "ed", "er"):
        return True
    return len(one) == len(two) and sum(a != b for a, b in zip(one, two, strict=True)) == 1


def test_no_two_modules_are_look_alikes():
    """Commands are named after the functions they call, and are left aside."""
    stems = {file.stem for file in SOURCE.rglob("*.py") if "cli" not in file.parts} - {"__init__", "__main__"}
    assert not [pair for pair in combinations(sorted(stems), 2) if alike(*pair)]
    assert alike("table", "tables")
    assert alike("tile", "tiling")
    assert not alike("layer", "heads")
