"""Sorting in one layer of attention, every head explained.

    python examples/sorting.py 0.3 0.9 0.5 0.1

What you learn: a head with large sharpness reads the largest of the numbers it looks at; the k-th smallest of n numbers is a
fixed combination of such maxima (2^n − 1 of them); so one layer sorts, for all inputs at once, within a proved bound. Nothing is
trained, and `explain` shows what each head adds to each place.
"""

import sys

import numpy as np

import onelayer as ol

NUMBERS = (0.3, 0.9, 0.5, 0.1)


def main(given: list[str] | None = None) -> int:
    x = np.array([float(text) for text in given or []] or NUMBERS)
    if not (2 <= len(x) <= 6 and (x >= 0).all() and (x <= 1).all()):
        print("give 2 to 6 numbers between 0 and 1")
        return 2
    layer = ol.gallery.sort(len(x), tolerance=1e-9)
    print(layer)
    print(layer.explain(x).table(most=2 ** len(x) - 1))
    sorted_by_layer = layer(x)
    print("given        ", ", ".join(f"{v:g}" for v in x))
    print("one layer    ", ", ".join(f"{v:.10f}" for v in sorted_by_layer))
    largest = float(np.abs(sorted_by_layer - np.sort(x)).max())
    c = layer.certificate
    print(f"largest difference here {largest:.1e}; {c.verdict}: at most {c.bound:.1e} for any numbers in the domain")
    return 0 if c.verdict == "CERTIFIED" and largest <= c.bound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
