"""The gallery in numbers: `python benchmarks/measure/gallery.py` builds every entry for real numbers and writes gallery.md.

The second table shows the smallest tolerance that rounding lets us prove for sort, in float64 and in float32.
"""

import math

import onelayer as ol
from onelayer import gallery
from onelayer.common.numbers import at_least, at_most
from onelayer.construction.gallery.maxima import expected_range
from onelayer.construction.gallery.order import rank_factor
from page import markdown, options, page_of, placed

PAGE = page_of("gallery.md")
LENGTHS = (2, 3, 4, 5, 6, 8, 10, 12)


def entries() -> str:
    """One row per entry."""
    made = [
        ("sort(5)", gallery.sort(5, 1e-9)),
        ("sort(8)", gallery.sort(8, 1e-9)),
        ("sort(10)", gallery.sort(10, 1e-6)),
        ("maximum(8)", gallery.maximum(8, 1e-9)),
        ("minimum(8)", gallery.minimum(8, 1e-9)),
        ("median(7)", gallery.median(7, 1e-9)),
        ("top_k(8, 2)", gallery.top_k(8, 2, 1e-9)),
        ("absolute_difference()", gallery.absolute_difference(1e-9)),
        ("running_max(16)", gallery.running_max(16, 1e-9)),
        ("clip(8)", gallery.clip(8)),
        ("mean(100)", gallery.mean(100)),
        ("affine (3 × 8)", gallery.affine([[1 / (i + j + 1) for j in range(8)] for i in range(3)])),
        ("reverse(100)", gallery.reverse(100)),
        ("shift(100, 3)", gallery.shift(100, 3)),
        ("deep_set()", gallery.deep_set()),
    ]
    rows = [
        (
            f"`{name}`",
            ", ".join(f"{count:,} {kind}" for kind, count in a.facts.heads),
            f"{a.parameters:,}",
            at_most(a.certificate.bound, 2),
            at_least(a.certificate.observed, 2),
        )
        for name, a in made
    ]
    return markdown(["entry", "heads", "parameters", "bound (proved)", "observed error"], rows)


def smallest(n: int, dtype: str) -> str:
    """The smallest tolerance for which sort(n) is proved, to two digits."""
    low, high = -16.0, 0.0
    while high - low > 0.02:
        middle = (low + high) / 2
        try:
            gallery.sort(n, 10**middle, dtype=dtype)
            high = middle
        except ol.InputError:
            low = middle
    return f"{10**high:.1e}"


def limits() -> str:
    """Rounding: Σ|c| of the hardest rank, R_n, and the smallest tolerances."""
    rows = []
    for n in LENGTHS:
        total = max(
            sum(math.comb(n, size) * abs(rank_factor(size, k)) for size in range(k, n + 1)) for k in range(1, n + 1)
        )
        single = smallest(n, "float32") if n <= 8 else "–"
        cells = (f"{n}", f"{2**n - 1:,}", f"{total:,}", f"{expected_range(n):.3f}", smallest(n, "float64"), single)
        rows.append(cells)
        print("; ".join(cells), flush=True)
    return markdown(["n", "heads", "Σ\\|c\\|", "R_n", "least tolerance, float64", "float32"], rows)


def main() -> None:
    options(__doc__).parse_args()
    page = placed(PAGE.read_text(), "entries", entries())
    PAGE.write_text(placed(page, "limits", limits()))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
