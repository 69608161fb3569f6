"""What an installation weighs: the package with all it requires, and what each extra adds, in this environment.

`python benchmarks/measure/installed.py` prints a table. Sizes are those of the files that pip lists; what is not installed here
is named instead of counted.
"""

import argparse
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from page import markdown

USES = {  # of an installation: the extras that a user of the package may want
    "": "all of `build`, `check`, `certify`, `train`, reports",
    "onnx": "`onelayer export --to onnx`",
    "web": "the explorer, `onelayer serve`",
    "sklearn": "the estimators",
    "files": "Parquet",
    "gpu": "fused kernels",
}


def closure(name: str, extra: str = "", known: set[str] | None = None) -> set[str]:
    """The names of everything that pip installs for name[extra]; with a * if it is not installed here."""
    found = set() if known is None else known
    try:
        wanted = distribution(name).requires or []
    except PackageNotFoundError:
        return found | {f"{canonicalize_name(name)}*"}
    for text in wanted:
        need = Requirement(text)
        if need.marker and not need.marker.evaluate({"extra": extra}):
            continue
        inner = canonicalize_name(need.name)
        if inner in found and not need.extras:
            continue
        if inner != canonicalize_name(name):
            found.add(inner)
        for part in ("", *need.extras):
            found |= closure(need.name, part, found)
    return found


def megabytes(names: Iterable[str]) -> float:
    """The files of these packages together."""
    total = 0
    for name in names:
        files = distribution(name).files or []
        total += sum(path.stat().st_size for path in (file.locate() for file in files) if path.is_file())
    return total / 1e6


def row(extra: str, base: set[str]) -> list[str]:
    added = closure("onelayer", extra) - (base if extra else set())
    absent = sorted(name.rstrip("*") for name in added if name.endswith("*"))
    size = f"{megabytes(name for name in added if not name.endswith('*')):,.0f} MB"
    what = f"`onelayer[{extra}]` adds" if extra else "`onelayer`"
    return [what, USES[extra], f"{len(added)}", size + (f", and {', '.join(absent)}" if absent else "")]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    base = closure("onelayer")
    print(markdown(("installed", "for", "packages", "size"), [row(extra, base) for extra in USES]))
    torch = closure("torch") | {"torch"}
    print(f"\ntorch {distribution('torch').version} and what it needs: {megabytes(torch):,.0f} MB")


if __name__ == "__main__":
    main()
