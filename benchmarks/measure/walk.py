"""How far control walks through the package to build the paper's example: modules entered, and changes of room.

    python benchmarks/measure/walk.py                                this tree
    PYTHONPATH=OTHER/src python benchmarks/measure/walk.py           another tree, by the same definition

A *room* is a folder or a module directly below `onelayer`. Two runs are counted, each after an uncounted first run, which does
the imports:

    command    onelayer build "sin(x1)+sin(x2)" --domain 0:2*pi --eps 1e-4 --out FOLDER --quiet; the report is written too
    build      onelayer.build("sin(x1)+sin(x2)", [(0, "2*pi")]*2, 1e-4)

An *entry* is a call event of `sys.setprofile` for Python code of the package, on the main thread: a call or the resumption of
a generator, not a return. *Modules* are the files with at least one entry, some of them at the top, in no folder. A *change of
room* is an entry in another room than the entry before it, whoever the caller was. Entries in `common` are left out: like a
library, it belongs to every room. The last column counts changes again with all modules at the top taken as one room. Before the
package had rooms (75 modules at the top, `common` among them) this script printed

    command    96 modules, 44 of them at the top; 3,155 changes; 592 with the top as one room
    build      66 modules, 29 of them at the top; 2,807 changes; 379 with the top as one room
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import onelayer as ol
from onelayer.apps.cli import main as onelayer
from page import markdown, options

PACKAGE = Path(ol.__file__).parent
Entry = tuple[str, str]  # module, as a path below the package, and function


def command() -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = ["sin(x1)+sin(x2)", "--domain", "0:2*pi", "--eps", "1e-4", "--out", f"{folder}/layer", "--quiet"]
        assert onelayer(["build", *words]) == 0


def build() -> None:
    ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-4)


def walk(run: Callable[[], None]) -> list[Entry]:
    """Every entry into the package during the second of two runs, in order."""
    run()
    entered: list[Entry] = []
    inside = f"{PACKAGE}/"

    def note(frame, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside):
            entered.append((code.co_filename.removeprefix(inside), code.co_qualname))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered


def room(entry: Entry) -> str:
    return entry[0].split("/")[0]


def room_or_top(entry: Entry) -> str:
    return room(entry) if "/" in entry[0] else "top"


def changes(entered: list[Entry], room: Callable[[Entry], str] = room) -> list[tuple[Entry, Entry]]:
    """(last entry in one room, first entry in the next) for every change of room."""
    entered = [entry for entry in entered if room(entry) != "common"]
    return [(before, after) for before, after in pairwise(entered) if room(before) != room(after)]


def pairs_table(entered: list[Entry], most: int) -> str:
    """The pairs of rooms with the most changes between them, and what was entered most often."""
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for before, after in changes(entered):
        pairs.setdefault((room(before), room(after)), Counter())[": ".join(after)] += 1
    largest = sorted(pairs.items(), key=lambda pair: -pair[1].total())[:most]
    rows = [
        (" → ".join(rooms), str(seen.total()), "; ".join(f"{name} {count}" for name, count in seen.most_common(3)))
        for rooms, seen in largest
    ]
    return markdown(("from → to", "changes", "entered most often"), rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--most", type=int, default=12, help="how many pairs of rooms to print")
    most = parser.parse_args().most
    walks = {run.__name__: walk(run) for run in (command, build)}
    rows = []
    for name, entered in walks.items():
        modules = {module for module, _ in entered}
        top = sum("/" not in module for module in modules)
        changed = [len(changes(entered, each)) for each in (room, room_or_top)]
        rows.append([name, *(f"{count:,}" for count in (len(entered), len(modules), top, *changed))])
    print(markdown(("run", "entries", "modules", "at the top", "changes of room", "with the top as one room"), rows))
    for name, entered in walks.items():
        print(f"\n{name}\n\n{pairs_table(entered, most)}")


if __name__ == "__main__":
    main()
