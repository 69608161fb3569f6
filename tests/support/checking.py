"""The checker as its users run it: a file of its own, without the checks of signatures that slow every call down in the tests."""

import importlib.util
import sys
from pathlib import Path

import onelayer as ol

SOURCE = Path(ol.__file__).parent / "checker.py"

spec = importlib.util.spec_from_file_location("alone", SOURCE)
checker = sys.modules["alone"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
check = checker.check
