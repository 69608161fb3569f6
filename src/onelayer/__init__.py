"""onelayer: turn functions into single-layer Transformers, with proof.

Only the public names live here. Each is imported from its module on first use, so that `import onelayer` stays
quick and touches neither torch nor any random state, default dtype, warning filter or file.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import gallery as gallery
    from . import reference as reference
    from .approximation import Approximation as Approximation
    from .build import build as build
    from .certify.decide import certify as certify
    from .checker import check as check
    from .compare import compare as compare
    from .config import LayerConfig as LayerConfig
    from .distill import distill as distill
    from .errors import InputError as InputError
    from .errors import OneLayerError as OneLayerError
    from .export import export as export
    from .inspect import inspect as inspect
    from .memorize import memorize as memorize
    from .model import SingleLayerTransformer as SingleLayerTransformer
    from .plan import plan as plan
    from .stock import from_stock as from_stock
    from .storage import load as load
    from .study import study as study
    from .target import Target as Target
    from .train import train as train
    from .views.estimator import OneLayerClassifier as OneLayerClassifier
    from .views.estimator import OneLayerRegressor as OneLayerRegressor
    from .views.plot import plot as plot
    from .views.report import report as report

__version__ = "0.1.0"

# public name → the module that defines it
_HOME = {
    "Approximation": "approximation",
    "InputError": "errors",
    "LayerConfig": "config",
    "OneLayerClassifier": "views.estimator",
    "OneLayerError": "errors",
    "OneLayerRegressor": "views.estimator",
    "SingleLayerTransformer": "model",
    "Target": "target",
    "build": "build",
    "certify": "certify.decide",
    "check": "checker",
    "compare": "compare",
    "distill": "distill",
    "export": "export",
    "from_stock": "stock",
    "inspect": "inspect",
    "load": "storage",
    "memorize": "memorize",
    "plan": "plan",
    "plot": "views.plot",
    "report": "views.report",
    "study": "study",
    "train": "train",
}
_MODULES = ("gallery", "reference")  # public as modules

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'onelayer' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `onelayer.inspect` the function when the submodule of the same name is imported.

    Python binds a submodule to its parent under the submodule's name; for a public function that shares the name
    of its file the function wins (`from onelayer.inspect import Inspection` reaches what else is in the file).
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
