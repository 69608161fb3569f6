"""How many lines a proof rests on, and which arguments about rounding there are. `python benchmarks/measure/trusted.py --page`

Proves layers of several kinds and counts the functions of the package that are entered meanwhile: their lines without docstrings,
comments and blank lines, each function once. What is entered only to look for points (observation, lower bounds, the witness) is
counted apart: a bound does not rest on it. One column counts all of these functions with every line that they have. Lines of
classes outside their methods, of modules outside functions, of `common`, and of libraries are not counted. `--page` writes both
tables into docs/trust/guarantees.md; `PYTHONPATH=TREE/src` chooses the tree.
"""

import ast
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch

import onelayer as ol
from page import markdown, options, page_of, placed

PACKAGE = Path(ol.__file__).parent
LOOKING = (
    "proof/observation.py",
    "proof/ascent.py",
    "proof/attained.py",
    "proof/witness.py",
)  # and all that they enter
Function = tuple[str, int]  # module, as a path below the package, and the first line
ARGUMENTS = (  # about rounding: what is bounded, the lemma, its files, who uses it
    (
        "running error, for any weights",
        "every step adds u of its result, and the smallest number; a factor that all exponentials share cancels",
        ("layer/rounding/running.py", "proof/bisection/transformer.py", "proof/bisection/attention.py"),
        "bisection; slopes in C, circuits, the gates of the theorem, our own arithmetic on a grid",
    ),
    (
        "numbers affine in x̂ and in averages, for weights that were read",
        "k terms cost u[Σ′ + (k − 2)⁺Σ + the result], and what underflows; multiples of one power of two add up exactly; "
        "an average moves by Σ w_t η_t (v_t − z)/(1 + Σ w_t η_t)",
        ("layer/affine.py", "layer/rounding/deployed.py", "layer/rounding/proportional.py"),
        "analytic bounds, composed layers, exports, `fast`, the search in float32",
    ),
    (
        "attention in blocks",
        "the same factor multiplies both sums",
        ("layer/rounding/online_softmax.py",),
        "other programs and kernels, by either of the two",
    ),
)


def trained(dtype: str) -> tuple[ol.SingleLayerTransformer, ol.Target]:
    """Weights that no construction wrote: random ones, as training would start from."""
    config = ol.LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=8, heads=2, d_k=4, d_v=4, ffn_width=8, memory_tokens=3
    )
    return ol.SingleLayerTransformer(config, seed=1, dtype=getattr(torch, dtype)).eval(), ol.Target("x1", [(0, 1)])


def built(text: str, sides: list, tolerance: float, dtype: str = "float64") -> Callable[[], object]:
    """A proof of a layer that was built before."""
    found = ol.build(text, sides, tolerance, dtype=dtype)
    return lambda: ol.certify(found.model, found.target, tolerance)


def arbitrary(dtype: str) -> Callable[[], object]:
    model, target = trained(dtype)
    return lambda: ol.certify(model, target, 10.0, seconds=5)


def proofs() -> dict[str, Callable[[], object]]:
    return {
        "built, smooth": built("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-6),
        "built, float32": built("sin(x1)", [(0, 3)], 1e-3, "float32"),
        "built, kinks": built("abs(x1 - x2)", [(0, 1)] * 2, 1e-6),
        "arbitrary weights": arbitrary("float64"),
        "arbitrary weights, float32": arbitrary("float32"),
    }


def entered(run: Callable[[], object]) -> tuple[set[Function], set[Function]]:
    """The functions of the package that a second run enters: those that a bound rests on, and those that look for points."""
    run()
    rests, looks = set[Function](), set[Function]()
    inside, depth, looking_since = f"{PACKAGE}/", 0, math.inf

    def note(frame, event: str, _: object) -> None:
        nonlocal depth, looking_since
        if event == "call":
            depth += 1
            code = frame.f_code
            module = code.co_filename.removeprefix(inside)
            if code.co_filename.startswith(inside) and not module.startswith("common/"):
                if module.startswith(LOOKING):
                    looking_since = min(looking_since, depth)
                (looks if depth >= looking_since else rests).add((module, code.co_firstlineno))
        elif event == "return":
            if depth == looking_since:
                looking_since = math.inf
            depth -= 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return rests, looks - rests


def lines_of(module: str, every: bool = False) -> dict[int, set[int]]:
    """First line of every function → its lines of code, or `every` line."""
    source = (PACKAGE / module).read_text()
    tree, rows, found = ast.parse(source), source.splitlines(), dict[int, set[int]]()
    silent = {n for n, row in enumerate(rows, 1) if not row.strip() or row.strip().startswith("#")}
    for node in ast.walk(tree):
        first = node.body[0] if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            silent |= set(range(first.lineno, first.end_lineno + 1))
    silent = set() if every else silent
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[start] = set(range(start, node.end_lineno + 1)) - silent
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):  # its line may be that of a function
            found.setdefault(node.lineno, set(range(node.lineno, node.end_lineno + 1)) - silent)
    return found


def count(functions: set[Function], every: bool = False) -> Counter[str]:
    """Their lines by folder, or by module where that is in no folder of a room."""
    rooms = Counter[str]()
    for module in {module for module, _ in functions}:
        known = lines_of(module, every)
        lines = set[int]().union(*(known.get(line, set()) for name, line in functions if name == module))
        rooms["/".join(module.split("/")[:2])] += len(lines)
    return rooms


def arguments() -> str:
    """The table of arguments about rounding, with the lines of the functions in their files."""
    rows = []
    for name, lemma, files, users in ARGUMENTS:
        here = [file for file in files if (PACKAGE / file).exists()]  # in another tree
        lines = sum(len(set[int]().union(*lines_of(file).values())) for file in here)
        rows.append((name, lemma, ", ".join(f"`{file}`" for file in files), str(lines), users))
    return markdown(("argument", "lemma", "where", "lines", "used for"), rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into the page")
    page = parser.parse_args().page
    rows = []
    for name, run in proofs().items():
        rests, looks = entered(run)
        rooms = count(rests)
        largest = ", ".join(f"{room} {lines}" for room, lines in rooms.most_common(6))
        numbers = (len(rests), rooms.total(), count(looks).total(), count(rests | looks, every=True).total())
        rows.append((name, *(f"{n:,}" for n in numbers), largest))
    heads = (
        "proof",
        "functions",
        "lines it rests on",
        "lines that look for points",
        "both, every line",
        "most of them in",
    )
    trusted = markdown(heads, rows)
    print(f"{trusted}\n\n{arguments()}")
    if page:
        path = page_of("guarantees.md")
        text = placed(path.read_text(), "trusted", trusted)
        path.write_text(placed(text, "arguments", arguments()))


if __name__ == "__main__":
    main()
