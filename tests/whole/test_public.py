"""The public surface, lazy imports, and the direction of imports: core < views < apps."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import onelayer as ol

SOURCE = Path(ol.__file__).parent


def test_public_names():
    assert ol.__all__ == [
        "Approximation",
        "InputError",
        "LayerConfig",
        "OneLayerClassifier",
        "OneLayerError",
        "OneLayerRegressor",
        "SingleLayerTransformer",
        "Target",
        "__version__",
        "build",
        "certify",
        "check",
        "compare",
        "distill",
        "export",
        "gallery",
        "inspect",
        "load",
        "memorize",
        "plan",
        "plot",
        "reference",
        "report",
        "study",
        "train",
    ]
    for name in ol.__all__:
        assert getattr(ol, name) is not None
    assert dir(ol) == ol.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ol.nothing


def test_a_function_keeps_its_name_when_its_module_is_imported():
    import onelayer.model.inspection  # noqa: F401

    assert callable(ol.inspect)


def test_import_is_lazy():
    """`import onelayer` loads neither torch nor plotly nor numpy."""
    code = "import sys, onelayer; sys.exit(any(m in sys.modules for m in ('torch', 'plotly', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_import_touches_no_global_state():
    code = """
import random, sys, warnings, numpy, torch
before = (random.getstate(), str(numpy.random.get_state()), torch.random.get_rng_state().tolist(),
          torch.get_default_dtype(), list(warnings.filters), numpy.geterr())
import onelayer
for name in onelayer.__all__:
    getattr(onelayer, name)
after = (random.getstate(), str(numpy.random.get_state()), torch.random.get_rng_state().tolist(),
         torch.get_default_dtype(), list(warnings.filters), numpy.geterr())
sys.exit(before != after)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def imports(file: Path) -> set[str]:
    """The modules of onelayer that a file names in its imports, as dotted names below `onelayer`."""
    package = ("onelayer", *file.relative_to(SOURCE).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            found.add(".".join([*base, *([node.module] if node.module else [])]))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.removeprefix("onelayer.") for name in found if name.startswith("onelayer.")}


def layer(module: str) -> int:
    return {"views": 1, "apps": 2}.get(module.split(".")[0], 0)


def test_layers_import_downward_only():
    for file in SOURCE.rglob("*.py"):
        own = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        upward = [name for name in imports(file) if layer(name) > layer(own)]
        assert own == "__init__" or not upward, f"{own} imports {upward}"
