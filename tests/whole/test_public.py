"""The public surface and lazy imports."""

import subprocess
import sys

import pytest

import onelayer as ol


def test_public_names():
    assert ol.__all__ == [
        "Approximation",
        "Function",
        "InputError",
        "LanguageModel",
        "LayerConfig",
        "OneLayerClassifier",
        "OneLayerError",
        "OneLayerRegressor",
        "SequenceLayer",
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
        "language",
        "load",
        "memorize",
        "norm",
        "plan",
        "plot",
        "prompt",
        "prove",
        "reference",
        "report",
        "set_function",
        "study",
        "supremum",
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
