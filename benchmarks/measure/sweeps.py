"""The built-in studies and their place in study.md.

    python benchmarks/measure/sweeps.py epsilon    runs a study (or resumes it from study-epsilon), stores its table as
                                                   docs/studies/epsilon.csv, draws its pictures, writes its part of the page
    python benchmarks/measure/sweeps.py            all of them, one after the other
    python benchmarks/measure/sweeps.py --draw     pictures and page from the stored tables: nothing is measured
    python benchmarks/measure/sweeps.py --page     the page alone, from the stored tables

Pictures need kaleido (`pip install 'onelayer[figures]'`) and Chromium.
"""

import os
from pathlib import Path

import onelayer as ol
from onelayer.common.atomic import write_file
from onelayer.experiments.study import Study
from onelayer.experiments.study.fitted_rates import rate_table
from onelayer.experiments.study.summary import result_text
from onelayer.experiments.study.sweep import sweep_of
from onelayer.views.study_page import study_figures
from page import DOCS, options, page_of, placed

PAGE = page_of("study.md")
STUDIES = (
    "epsilon", "attention", "sorting", "depth", "learnability", "samples", "functions",
    "context", "classes", "steps", "generalisation", "variants", "rank", "landscape", "polishing",
    "heads", "roles", "memorisation",
)  # fmt: skip
LEFT_OUT = ("formula", "domain", "error")  # columns left out of the stored tables: the sweep knows them


def stored(name: str) -> Study:
    """The study as docs/studies holds it."""
    return Study.read(sweep_of(f"builtin:{name}"), DOCS / "studies" / f"{name}.csv")


def keep(study: Study, name: str) -> Path:
    """Store a study's table in the documentation, with numbers to six digits."""
    rows = [
        {k: _short(k, v) for k, v in row.items() if k not in LEFT_OUT or (k == "error" and v)} for row in study.rows
    ]
    return Study(study.sweep, tuple(rows)).csv(DOCS / "studies" / f"{name}.csv", overwrite=True)


def _short(column: str, value: object) -> object:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) >= 1000 else float(result_text(value, column, 6))
    return value


def draw(study: Study, name: str) -> None:
    """The study's pictures as SVG; an unchanged picture is the same file."""
    from figures import find_browser, settled  # needs kaleido, as drawing does

    find_browser()
    for number, (_, figure) in enumerate(study_figures(study), start=1):
        drawn = figure.to_image(format="svg", width=900, height=440).decode()
        write_file(DOCS / "studies" / f"{name}-{number}.svg", settled(drawn))


def section(study: Study, name: str) -> str:
    """The study's part of the page: pictures, rates beside theory, tables."""
    titles = [title for title, _ in study_figures(study)]
    folder = os.path.relpath(DOCS / "studies", PAGE.parent)
    parts = [f"{study.sweep.about}", f"{study.summary()} (`docs/studies/{name}.csv`)."]
    parts += [f"![{title}]({folder}/{name}-{number}.svg)\n\n*{title}.*" for number, title in enumerate(titles, start=1)]
    for spec in study.sweep.rates:
        rates = [rate for rate in study.rates() if rate.spec is spec]
        if rates:
            theory = f" Theory: {rates[0].prediction.statement}." if rates[0].prediction else ""
            parts += [f"**{spec.title}.**{theory}", rate_table(rates).markdown().strip()]
    if study.sweep.limits:
        parts.append(f"*Where theory and measurement part.* {study.sweep.limits}")
    for table in study.tables():
        parts += [f"**{table.title}.**", table.markdown().strip()]
    return "\n\n".join(parts)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(STUDIES)}")
    parser.add_argument("--page", action="store_true", help="only write the page, from the stored tables")
    parser.add_argument("--draw", action="store_true", help="draw pictures and write the page from the stored tables")
    parser.add_argument("--workers", type=int, help="number of processes")
    parser.add_argument("--out", type=Path, default=Path(), help="folder that holds the folders study-NAME")
    args = parser.parse_args()
    for name in args.names or STUDIES:
        if not (args.page or args.draw):
            keep(ol.study(f"builtin:{name}", args.out / f"study-{name}", workers=args.workers), name)
        if not args.page:
            draw(stored(name), name)
        PAGE.write_text(placed(PAGE.read_text(), f"study-{name}", section(stored(name), name)))
        print(f"{name}: {stored(name).summary()}")


if __name__ == "__main__":
    main()
