"""Proofs in Coq: how long coqc takes on files of `onelayer export --to coq`, and that it rejects files whose claim is false.

`python benchmarks/measure/kernel.py` builds the layers of the list, writes their files and compiles them. `--mutations 100`
changes one weight or the tolerance of such a layer so that its error, observed at many points, exceeds what the file claims, by
a factor from 1.05 to 2 that is drawn first; the proof is made anew from the changed weights where that can be done, otherwise
the old proof meets the new weights. Every such file must be rejected. `--page` writes the table into formal.md, `--only NAME`
takes the layers whose name contains the word. Seconds are those of the processor, in coqc.
"""

import copy
import math
import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.errors import InputError
from onelayer.deployment.export.coq import source
from onelayer.deployment.export.coq.run import CoqAnswer, run
from onelayer.deployment.export.coq.text import layer
from onelayer.deployment.export.subject import Subject, subject_of
from onelayer.model.transformer import SingleLayerTransformer
from page import markdown, options, page_of, placed

LIMIT = 600.0  # seconds that coqc may take
POINTS = 40_000  # at which a changed layer is judged
LEAST, MOST = 1.05, 2.0  # observed error / claimed bound of a false claim
HARD = 1e-7  # layers of a smaller tolerance take long and are not changed
STEPS = 14  # of the search for the change


@dataclass(frozen=True)
class KernelCase:
    """How to build a layer; `changed` tells whether false claims are made of it, which takes a formula."""

    build: Callable[[], Approximation]
    changed: bool = True


CASES = {
    "sin x on [0, 2π], 1e-6": KernelCase(lambda: ol.build("sin(x)", "0:2*pi", 1e-6)),
    "sin x on [0, 2π], 1e-8": KernelCase(lambda: ol.build("sin(x)", "0:2*pi", 1e-8)),
    "sin x1 + sin x2 on [0, 2π]², 1e-6": KernelCase(lambda: ol.build("sin(x1)+sin(x2)", [(0, "2*pi")] * 2, 1e-6)),
    "1/(1 + 25x²) on [−1, 1], 1e-6": KernelCase(lambda: ol.build("1/(1+25*x^2)", "-1:1", 1e-6)),
    "x1·x2 on [0, 1]², 1e-4": KernelCase(lambda: ol.build("x1*x2", [(0, 1)] * 2, 1e-4)),
    "sin(x1·x2) on [0, 1]², 1e-2": KernelCase(lambda: ol.build("sin(x1*x2)", [(0, 1)] * 2, 1e-2)),
    "exp(−x1² − x2²) on [0, 1]², 1e-3": KernelCase(lambda: ol.build("exp(-x1^2-x2^2)", [(0, 1)] * 2, 1e-3)),
    "abs(x1 − x2) on [0, 1]², 1e-3": KernelCase(lambda: ol.build("abs(x1-x2)", [(0, 1)] * 2, 1e-3)),
    "max(x1, x2, x3) on [0, 1]³, 1e-3": KernelCase(lambda: ol.build("max(x1,x2,x3)", [(0, 1)] * 3, 1e-3)),
    "tanh 3x on [−1, 1], 1e-5": KernelCase(lambda: ol.build("tanh(3*x)", "-1:1", 1e-5)),
    "x1·exp(−x2) on [0, 1]², 1e-3": KernelCase(lambda: ol.build("x1*exp(-x2)", [(0, 1)] * 2, 1e-3)),
    "√(1 + x1·x2) on [0, 1]², 1e-3": KernelCase(lambda: ol.build("sqrt(1+x1*x2)", [(0, 1)] * 2, 1e-3)),
    "sort of 4 numbers, 1e-6": KernelCase(lambda: ol.gallery.sort(4), changed=False),
    "histogram of 8 tokens out of 26": KernelCase(lambda: ol.gallery.histogram(8), changed=False),
    "majority of 8 bits": KernelCase(lambda: ol.gallery.majority(8), changed=False),
}


def compiled(text: str) -> tuple[CoqAnswer, float]:
    """What coqc says, and the processor seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = run(text, LIMIT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(name: str, subject: Subject) -> list[str]:
    """One row: the file, compiled with its list of axioms."""
    try:
        text = source(subject)
    except InputError as refused:
        return [name, str(subject.model.config.heads), "–", "–", f"refused: {refused}"]
    answer, seconds = compiled(text)
    verdict = f"proved, {len(answer.axioms)} axioms" if answer.accepted else answer.reason
    return [name, str(subject.model.config.heads), f"{len(text) / 1000:.0f}", f"{seconds:.0f}", verdict]


class Doubter:
    """Changes one layer until its claim is false by a given factor."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        a, D = subject.approximation, subject.dimension
        side = np.linspace(0.0, 1.0, round(POINTS ** (1 / D)))
        self.x = a.domain.points(np.stack(np.meshgrid(*[side] * D), axis=-1).reshape(-1, D))
        assert a.target is not None
        self.y = np.asarray(a.target(self.x)).reshape(len(self.x), -1)
        self.tolerance = a.certificate.tolerance

    def error(self, model: SingleLayerTransformer) -> float:
        found = replace(self.subject.approximation, model=model)(self.x)
        return float(np.abs(np.asarray(found).reshape(self.y.shape) - self.y).max())

    def claimed(self, factor: float) -> tuple[str, float]:
        """The same layer with a smaller tolerance."""
        a = self.subject.approximation
        seen = self.error(self.subject.model)
        less = replace(a.certificate, tolerance=seen / factor)
        return source(replace(self.subject, approximation=replace(a, certificate=less)), anyway=True), factor

    def weighed(self, factor: float, generator: np.random.Generator) -> tuple[str, float, str] | None:
        """One weight changed so that the error is about `factor` times the tolerance; None where that one cannot do it."""
        model = self.subject.model
        names = [n for n, w in model.named_parameters() if w.count_nonzero()]
        name = names[generator.integers(len(names))]
        entries = dict(model.named_parameters())[name].detach().flatten()
        place = int(generator.choice(entries.nonzero().flatten().numpy()))
        sign = generator.choice([-1.0, 1.0])

        def changed(by: float) -> SingleLayerTransformer:
            other = copy.deepcopy(model)
            with torch.no_grad():
                dict(other.named_parameters())[name].view(-1)[place] *= 1 + sign * by
            return other

        low, high = -14.0, -0.3  # the exponent of the relative change
        if self.error(changed(10**high)) < factor * self.tolerance:
            return None
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.error(changed(10**middle)) > factor * self.tolerance else (middle, high)
        other = changed(10**high)
        margin = self.error(other) / self.tolerance
        if not LEAST <= margin <= 1.5 * MOST:
            return None
        return self._text(other), margin, f"{name}, relative change {10**high:.1g}"

    def _text(self, model: SingleLayerTransformer) -> str:
        """The proof made anew, or the old one about the new weights."""
        subject, other = self.subject, replace(self.subject, model=model)
        try:
            return source(other, anyway=True)
        except InputError:
            at = subject.places[0]
            text, old = source(subject), layer(subject.model, at)
            assert old in text
            return text.replace(old, layer(other.model, at))


def doubted(subjects: dict[str, Subject], count: int, seed: int) -> list[tuple[str, str, float, CoqAnswer]]:
    """False claims, (layer, change, error / claimed bound, what coqc said): a third by the tolerance, the others by a weight."""
    generator = np.random.default_rng(seed)
    doubters = [(name, Doubter(s)) for name, s in subjects.items() if CASES[name].changed]
    doubters = [(name, doubter) for name, doubter in doubters if doubter.tolerance >= HARD]
    found: list[tuple[str, str, float, CoqAnswer]] = []
    while len(found) < count:
        name, doubter = doubters[len(found) % len(doubters)]
        factor = math.exp(generator.uniform(math.log(LEAST), math.log(MOST)))
        if generator.integers(3) == 0:
            text, margin = doubter.claimed(factor)
            change = "tolerance"
        else:
            made = doubter.weighed(factor, generator)
            if made is None:
                continue
            text, margin, change = made
        answer, seconds = compiled(text)
        if answer.accepted is None:
            raise SystemExit(answer.reason)
        found.append((name, change, margin, answer))
        said = "ACCEPTED" if answer.accepted else answer.reason
        print(f"{len(found):4d}  {name}; {change}; {margin:.3f}; {said}; {seconds:.0f} s", flush=True)
    return found


def rejected(answer: CoqAnswer) -> bool:
    """Coq failed at some proof; running out of time is another thing."""
    return answer.accepted is False and "stops" in answer.reason


def summary(found: list[tuple[str, str, float, CoqAnswer]]) -> str:
    """One row per layer, and in words what was changed and how it ended."""
    rows = []
    for name in dict.fromkeys(row[0] for row in found):
        own = [row for row in found if row[0] == name]
        margins = np.quantile([margin for _, _, margin, _ in own], [0.0, 0.5, 1.0])
        where = Counter(answer.reason.removeprefix("coqc stops at the proof of ") for *_, answer in own)
        places = ", ".join(f"{reason} ({n})" for reason, n in where.most_common())
        spread = ", ".join(f"{margin:.2f}" for margin in margins)
        rows.append([name, str(len(own)), spread, str(sum(rejected(answer) for *_, answer in own)), places])
    columns = ["layer", "false claims", "error / claimed bound (least, median, most)", "rejected", "where Coq stops"]
    accepted = sum(bool(answer.accepted) for *_, answer in found)
    refused = sum(rejected(answer) for *_, answer in found)
    tolerances = sum(change == "tolerance" for _, change, _, _ in found)
    changed = f"{tolerances} by the tolerance and {len(found) - tolerances} by one weight"
    ended = f"{refused} rejected, {accepted} accepted, {len(found) - refused - accepted} not decided within {LIMIT:g} s"
    words = f"{len(found)} false claims, {changed}: {ended}."
    return markdown(columns, rows) + "\n\n" + words


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--mutations", type=int, default=0, help="so many false claims, instead of the times")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="layers whose name contains this")
    parser.add_argument("--page", action="store_true", help="write the table into formal.md")
    args = parser.parse_args()
    subjects = {name: subject_of(case.build(), None) for name, case in CASES.items() if args.only in name}
    if args.mutations:
        mark, table = "false-claims", summary(doubted(subjects, args.mutations, args.seed))
    else:
        rows = []
        for name, subject in subjects.items():
            rows.append(timed(name, subject))
            print(*rows[-1], sep="  ", flush=True)
        mark, table = "kernel", markdown(["layer", "heads", "file, kB", "seconds in coqc", "verdict"], rows)
    print(table)
    if args.page:
        page = page_of("formal.md")
        page.write_text(placed(page.read_text(), mark, table))


if __name__ == "__main__":
    main()
