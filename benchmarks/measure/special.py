"""Formulas with special functions in two and three variables: are they certified at 1 % and 0.1 % of their ranges?

    python benchmarks/measure/special.py     builds and checks what is not stored yet, stores the rows as
                                             benchmarks/data/special.csv and writes special.md
    … --only pendulum                        these formulas only
    … --again                                builds what is stored, too
    … --check                                lets the checker judge rows again that are not VALID; builds nothing new
    … --page                                 writes the page from the stored rows: nothing is measured

Default options; processor seconds on one thread. Stop it at any time; the same command resumes.
"""

import math

from built import REFUSED, Built, Case, arguments, run, stored
from onelayer.common.numbers import at_least, at_most, exact
from page import markdown, page_of, placed
from special_formulas import FORMULAS, SHARES

CASES = [Case(f.name, f.formula, f.domain, share) for f in FORMULAS for share in SHARES]
COLUMNS = (
    "",
    "tolerance",
    "units",
    "parameters",
    "seconds",
    "bound / tolerance",
    "observed / tolerance",
    "verdict",
    "checker",
)


def page_text(rows: dict[tuple[str, str, float, float], Built]) -> str:
    """What every formula is, and what became of it."""
    certified = [row for row in rows.values() if row.verdict == "CERTIFIED"]
    valid = [row for row in certified if row.check == "VALID"]
    counts = f"**{len(certified)} of {len(CASES)} layers are CERTIFIED**, and the checker reports VALID for {len(valid)} of them."
    parts, lines = [], []
    for f in FORMULAS:
        sides = ", ".join(
            f"{name} in [{exact(float(low))}, {exact(float(high))}]" for name, (low, high) in f.domain.items()
        )
        parts.append(f"- **{f.title}.** {f.about} `{f.formula}` on {sides}.")
        for case in CASES:
            if case.name == f.name:
                row = rows.get(case.key)
                lines.append([f.title if case.share == SHARES[0] else "", *cells(case, row)])
    told = "\n".join(f"- {reason}" for reason in reasons(rows))
    table = markdown(COLUMNS, lines)
    return "\n\n".join([counts, table, *([f"What failed, and why:\n\n{told}"] if told else []), "\n".join(parts)])


def cells(case: Case, row: Built | None) -> list[str]:
    if row is None or row.verdict == REFUSED:
        return [f"{100 * case.share:g} %", *["–"] * 5, row.verdict if row else "not measured", "–"]
    ratio = at_most(row.bound / row.tolerance, 3) if math.isfinite(row.bound) else "–"
    seen = at_least(row.observed / row.tolerance, 3)
    tolerance = f"{100 * case.share:g} %: {row.tolerance:g}"
    numbers = [f"{row.units:,}", f"{row.parameters:,}", f"{row.seconds:.1f}", ratio, seen]
    return [
        tolerance,
        *numbers,
        row.verdict,
        row.check + (f", {row.check_seconds:.1f} s" if row.check == "VALID" else ""),
    ]


def reasons(rows: dict[tuple[str, str, float, float], Built]) -> list[str]:
    """What the build said of layers that are not certified, and the checker of those that it does not confirm."""
    titles, found = {f.name: f.title for f in FORMULAS}, dict[tuple[str, str], list[str]]()
    for row in rows.values():
        if row.verdict != "CERTIFIED" or row.check != "VALID":
            why = row.why if row.verdict != "CERTIFIED" else f"{row.check}, {row.check_why}"
            found.setdefault((titles[row.name], why), []).append(f"{100 * row.share:g} %")
    return [f"{title}, {' and '.join(shares)}: {why}.".replace("|", "\\|") for (title, why), shares in found.items()]


def main() -> None:
    args = arguments(__doc__, [case.name for case in CASES], "study-special", paged=True)
    rows = stored("special") if args.page else run("special", CASES, args)
    page = page_of("special.md")
    page.write_text(placed(page.read_text(), "special", page_text(rows)))


if __name__ == "__main__":
    main()
