"""Many functions, one file of weights: the frozen layer with a prompt for each function, certified and checked.

`python benchmarks/measure/prompts.py` writes its table into prompts.md; `--only N` does the first N and writes nothing. Every
prompt is saved, loaded, and proved again by the independent checker; the SHA-256 is that of the saved files. Beside it stands the
layer that `ol.build` finds for the same function and tolerance, with weights of its own: what freezing them costs.
"""

import hashlib
import tempfile
from pathlib import Path

import torch

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from onelayer.construction.prompts.construction import Prompt
from page import markdown, options, page_of, placed

FUNCTIONS = [  # formula, domain, tolerance
    ("sin(x)", "x=0:2*pi", 1e-4),
    ("exp(-x)", "x=0:5", 1e-4),
    ("log(x)", "x=0.5:20", 1e-3),
    ("sqrt(x)", "x=0:1", 1e-2),
    ("abs(x)", "x=-1:1", 1e-2),
    ("1/(1 + 25*x**2)", "x=-1:1", 1e-4),
    ("tanh(50*x)", "x=-1:1", 1e-3),
    ("x**3 - 100*x", "x=-20:20", 1.0),
    ("sin(x)/x", "x=-10:10", 1e-3),
    ("max(x, 0.1*x)", "x=-3:3", 1e-2),
    ("x1*x2", "x1=-1:1, x2=900:1100", 1.0),
    ("sin(x1) + sin(x2)", "x1=0:2*pi, x2=0:2*pi", 1e-3),
    ("sqrt(x1**2 + x2**2)", "x1=1:3, x2=-2:2", 1e-3),
    ("exp(-x1**2 - x2**2)", "x1=-2:2, x2=-2:2", 1e-3),
    ("sin(x1*x2)", "x1=0:2, x2=0:2", 1e-3),
    ("x1**2 - x2**2", "x1=0:1e-3, x2=0:1e-3", 1e-9),
    ("x1*x2*x3", "x1=0:1, x2=0:1, x3=0:1", 1e-2),
    ("exp(-x1**2 - x2**2 - x3**2)", "x1=-1:1, x2=-1:1, x3=-1:1", 1e-2),
    ("x1*x2/(x3 + 1)", "x1=0:1, x2=0:2, x3=0:3", 1e-2),
    ("cos(x1 + 2*x2 - x3)", "x1=0:1, x2=0:1, x3=0:1", 1e-2),
]


def row(formula: str, domain: str, tolerance: float, folder: Path) -> tuple[list[str], str]:
    """The row of a function, and the digest of its file of weights."""
    prompt = ol.prompt(formula, domain, tolerance, seconds=120.0)
    prompt.save(folder)
    again, checked = Prompt(ol.load(folder)), ol.check(folder)
    assert torch.equal(again.tokens, prompt.tokens)
    own, c = ol.build(formula, domain, tolerance, seconds=120.0), prompt.certificate
    found = [
        f"`{formula}`", f"`{domain}`", f"{tolerance:g}", c.verdict, at_most(c.bound, 3), at_least(c.observed, 3), checked.verdict,
        f"{len(prompt.tokens)}", f"{prompt.tokens.numel()}", f"{own.units}", f"{own.parameters}",
    ]  # fmt: skip
    return found, hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", type=int, metavar="N", help="the first N functions, and no page")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows, digests = [], set()
    with tempfile.TemporaryDirectory() as place:
        for i, about in enumerate(FUNCTIONS[: args.only]):
            found, digest = row(*about, Path(place) / str(i))
            rows.append(found)
            digests.add(digest)
            print("; ".join(found), flush=True)
    names = ("function", "domain", "tolerance", "verdict", "bound (proved)", "observed", "checker")
    names += ("prompt tokens", "numbers in it", "units of a layer of its own", "its numbers")
    certified = sum(found[3] == "CERTIFIED" for found in rows)
    files = f"{len(digests)} file{'s' * (len(digests) != 1)} of weights, SHA-256 {', '.join(sorted(digests))}"
    text = f"{certified} of {len(rows)} functions are CERTIFIED with {files}.\n\n{markdown(names, rows)}"
    if args.only is None:
        page = page_of("prompts.md")
        page.write_text(placed(page.read_text(), "prompts", text))
    print(text)


if __name__ == "__main__":
    main()
