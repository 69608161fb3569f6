"""A layer for every function of the formula language, on two domains, for a thousandth and a millionth of its range.

    python benchmarks/measure/functions_built.py     builds and checks what is not stored yet, one layer after the other, and
                                                     stores the rows as benchmarks/data/functions_built.csv
    … --only j0 sin                                  these functions only
    … --again                                        builds what is stored, too
    … --check                                        lets the checker judge rows again that are not VALID; builds nothing new

Default options; processor seconds on one thread. Stop it at any time; the same command resumes. `python docs/language.py`
writes the page from the stored rows.
"""

from built import Case, arguments, run
from function_table import ROWS, SHARES

CASES = [
    Case(row.name, row.formula, domain, share, row.margin) for row in ROWS for domain in row.domains for share in SHARES
]


def main() -> None:
    args = arguments(__doc__, [case.name for case in CASES], "study-functions-built")
    rows = run("functions_built", CASES, args)
    certified = [row.verdict for row in rows.values()].count("CERTIFIED")
    print(
        f"{len(rows)} of {len(CASES)} stored: {certified} CERTIFIED, {[row.check for row in rows.values()].count('VALID')} VALID"
    )


if __name__ == "__main__":
    main()
