"""onelayer: turn functions into single-layer Transformers, with proof.

Only the public names live here. Each is imported from its module on first use, so that `import onelayer` stays
quick and touches neither torch nor any random state, default dtype, warning filter or file.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .approximation import Approximation as Approximation
    from .checker import check as check
    from .common.errors import InputError as InputError
    from .common.errors import OneLayerError as OneLayerError
    from .construction import gallery as gallery
    from .construction.language.construction import language as language
    from .construction.memorize.construction import memorize as memorize
    from .construction.plan import plan as plan
    from .construction.prompts.construction import prompt as prompt
    from .construction.set_functions import set_function as set_function
    from .deployment.export import export as export
    from .deployment.folder import load as load
    from .experiments.compare import compare as compare
    from .experiments.study import study as study
    from .formula.own import Function as Function
    from .language_model import LanguageModel as LanguageModel
    from .model import reference as reference
    from .model.config import LayerConfig as LayerConfig
    from .model.inspection import inspect as inspect
    from .model.transformer import SingleLayerTransformer as SingleLayerTransformer
    from .pipeline import build as build
    from .pipeline import certify as certify
    from .pipeline import norm as norm
    from .pipeline import prove as prove
    from .pipeline import supremum as supremum
    from .sequence_layer import SequenceLayer as SequenceLayer
    from .target.target import Target as Target
    from .training.descent import train as train
    from .training.distill import distill as distill
    from .training.estimators.estimator import OneLayerClassifier as OneLayerClassifier
    from .training.estimators.estimator import OneLayerRegressor as OneLayerRegressor
    from .views.plot import plot as plot
    from .views.report import report as report

__version__ = "0.1.0"

# public name → the module that defines it
_HOME = {
    "Approximation": "approximation",
    "Function": "formula.own",
    "InputError": "common.errors",
    "LanguageModel": "language_model",
    "LayerConfig": "model.config",
    "OneLayerClassifier": "training.estimators.estimator",
    "OneLayerError": "common.errors",
    "OneLayerRegressor": "training.estimators.estimator",
    "SequenceLayer": "sequence_layer",
    "SingleLayerTransformer": "model.transformer",
    "Target": "target.target",
    "build": "pipeline",
    "certify": "pipeline",
    "check": "checker",
    "compare": "experiments.compare",
    "distill": "training.distill",
    "export": "deployment.export",
    "inspect": "model.inspection",
    "language": "construction.language",
    "load": "deployment.folder",
    "memorize": "construction.memorize",
    "norm": "pipeline",
    "plan": "construction.plan",
    "plot": "views.plot",
    "prompt": "construction.prompts.construction",
    "prove": "pipeline",
    "report": "views.report",
    "set_function": "construction.set_functions",
    "study": "experiments.study",
    "supremum": "pipeline",
    "train": "training.descent",
}
_MODULES = {"gallery": "construction.gallery", "reference": "model.reference"}  # public as modules

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'onelayer' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name == "check":  # the checker imports nothing of ours: its door is here
        from .common.checks import known_options

        value = known_options(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
