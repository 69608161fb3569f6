"""What is different between two rows of the golden corpus, and whether it matters: see `golden.py`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LARGER = 1.01  # a float64 bound may grow by this factor
TOLD = 1e-3  # a bound that changes by a smaller share is counted in the summary alone
DECIDING = ("status", "verdict", "properties", "check", "check_status")  # a change of one of these matters

Row = dict[str, Any]  # of a record: what was measured of one case


@dataclass(frozen=True)
class Difference:
    """One value of a case that is another one now."""

    case: str
    what: str
    was: str
    now: str
    matters: bool

    @property
    def cells(self) -> list[str]:
        shown = (text if len(text) <= 60 else f"{text[:12]}…" for text in (self.was, self.now))
        return [self.case, self.what, *shown, "**yes**" if self.matters else "no"]


def number(bound: float | None) -> float:
    """A bound as a number: infinite if nothing is proved."""
    return math.inf if bound is None else bound


def ratio(was: float | None, now: float | None) -> float:
    """How many times larger a bound is now."""
    old, new = number(was), number(now)
    return 1.0 if old == new else new / old if old else math.inf


def differences(name: str, old: Row, new: Row, same_machine: bool = True) -> list[Difference]:
    """Every value of a row that has changed, and whether that matters."""
    found = list[Difference]()

    def add(what: str, was: Any, now: Any, matters: bool) -> None:
        found.append(Difference(name, what, str(was), str(now), matters))

    if old["command"] != new["command"]:
        add("command (freeze it again)", old["command"], new["command"], True)
        return found
    for what in DECIDING:
        if old.get(what) != new.get(what):
            add(what.replace("_", " "), old.get(what), new.get(what), True)
    if "said" in new:
        add("said", old.get("said"), new["said"], False)
    if "weights" not in old or "weights" not in new:
        return found
    same = old["weights"] == new["weights"]
    if not same:
        add("weights", old["weights"], new["weights"], same_machine)
    if old["method"] != new["method"]:
        add("method", old["method"], new["method"], False)
    comparable = (same or same_machine) and new["arithmetic"] == "float64"
    for what in ("bound", "slope"):
        times = ratio(old[what], new[what])
        if abs(times - 1) > TOLD:
            add(f"{what} × {times:.6g}", old[what], new[what], comparable and times > LARGER)
    if same and old["lower"] > number(new["bound"]):
        add("bound below an error proved before", old["lower"], new["bound"], True)
    if same and new["lower"] > number(old["bound"]):
        add("error above a bound proved before", old["bound"], new["lower"], True)
    was, now = old.get("false", {}), new.get("false", {})
    for kind in sorted(was.keys() | now.keys()):
        if now.get(kind) == "VALID" or (kind in was) != (kind in now):  # INVALID or not checkable: a matter of time
            add(f"check of a false {kind}", was.get(kind), now.get(kind), now.get(kind) == "VALID")
    return found


def summary(old: dict[str, Row], new: dict[str, Row], found: Sequence[Difference]) -> str:
    """What is the same, in a few lines."""
    equal = sum(old[name].get("weights") == row.get("weights") for name, row in new.items())
    times = [ratio(old[n]["bound"], row["bound"]) for n, row in new.items() if row.get("bound") and old[n].get("bound")]
    claimed = [verdict for row in new.values() for verdict in row.get("false", {}).values()]
    lines = [f"{len(new)} cases; the weights of {equal} are the same, bit by bit."]
    if times:
        mean = math.exp(sum(map(math.log, times)) / len(times))
        lines.append(
            f"Bounds: {times.count(1.0)} the same, {sum(t < 1 for t in times)} smaller, {sum(t > 1 for t in times)} larger."
        )
        lines.append(f"Bounds, new over old: geometric mean {mean:.6g}, from {min(times):.6g} to {max(times):.6g}.")
    lines.append(
        f"False claims: {len(claimed)}; VALID to {claimed.count('VALID')}, INVALID to {claimed.count('INVALID')}."
    )
    lines.append(f"Differences: {len(found)}; {sum(one.matters for one in found)} of them matter.")
    return "\n".join(lines)
