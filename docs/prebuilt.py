"""The layers that the site shows ready-made: `python docs/prebuilt.py` builds them, `make docs` only writes their pages.

docs/layers/NAME                      twelve model folders; `onelayer check` proves each of them again
src/onelayer/views/assets/story.json  the layers of the story's last steps, with their bounds and the boxes of their proofs
"""

import csv
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onelayer as ol
from onelayer.views.pages import layer_record
from onelayer.views.sequence_record import sequence_record
from onelayer.views.story_page import story_page
from showcase import Exhibit, write_showcase

DOCS = Path(__file__).parent
FOLDERS = DOCS / "layers"
EQUATIONS = DOCS.parent / "src" / "onelayer" / "experiments" / "study" / "builtin" / "feynman.csv"
STORY = DOCS.parent / "src" / "onelayer" / "views" / "assets" / "story.json"

FORMULA = "sin(10*x**2)/2 + exp(-(14*x - 4.2)**2)"  # the story's; assets/story_layers.js has it as well
TOLERANCE = 1e-4
MOST_BOXES = 500  # boxes of a proof that the story draws
SIZES = {"solved": (4, 6, 8, 12, 16, 24), "polished": (2, 3, 4, 5, 6, 8)}
FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)


@dataclass(frozen=True)
class Prebuilt:
    """A layer of the site: the name of its folder, what stands on its card, and how it is built."""

    name: str
    title: str
    about: str
    make: Callable[[], ol.Approximation]
    drawn: tuple[int, int] = (0, 1)  # variables of the small picture, from 0
    output: int = 0


def certified_record(approximation: ol.Approximation) -> dict[str, Any]:
    """A ready-made layer for the story: its weights, what is proved about it, and the boxes of the proof."""
    c, boxes = approximation.certificate, approximation.covering()
    return {
        "units": approximation.units,
        "parameters": approximation.parameters,
        "verdict": c.verdict,
        "bound": c.bound if math.isfinite(c.bound) else None,
        "observed": c.observed,
        "covering": None if boxes is None else boxes.record(MOST_BOXES),
        "layer": layer_record(approximation),
    }


def feynman(equation: str, tolerance: float) -> Callable[[], ol.Approximation]:
    """The equation of that name out of the hundred, on its box."""
    with EQUATIONS.open(encoding="utf-8") as file:
        (row,) = (row for row in csv.reader(file) if row[0] == equation)
    box = {row[i]: (float(row[i + 1]), float(row[i + 2])) for i in range(2, len(row), 3)}
    return lambda: ol.build(row[1], box, tolerance)


TWELVE = (
    Prebuilt(
        "franke",
        "Franke’s function",
        "Two hills, a dip and a slope: the classic test of surface fitting.",
        lambda: ol.build(FRANKE, [(0, 1)] * 2, 1e-3),
    ),
    Prebuilt(
        "grating",
        "A diffraction grating",
        "Light behind n slits at the angle θ. Feynman I.30.3.",
        feynman("I.30.3", 0.5),
        drawn=(1, 2),
    ),
    Prebuilt(
        "snell",
        "Snell’s law",
        "How a ray of light bends where air meets glass. Feynman I.26.2.",
        feynman("I.26.2", 0.03),
    ),
    Prebuilt(
        "interference",
        "Two waves meet",
        "Their intensities, and the phase between them. Feynman I.37.4.",
        feynman("I.37.4", 0.1),
        drawn=(0, 2),
    ),
    Prebuilt(
        "oscillation",
        "A quantum state oscillates",
        "The probability of finding it in the other state. Feynman III.8.54.",
        feynman("III.8.54", 0.01),
        drawn=(0, 2),
    ),
    Prebuilt(
        "crystal",
        "An electron in a crystal",
        "Its energy as a function of the wave number. Feynman III.15.12.",
        feynman("III.15.12", 0.1),
        drawn=(1, 2),
    ),
    Prebuilt(
        "torque", "Torque", "A force on a lever, turned by θ. Feynman I.18.12.", feynman("I.18.12", 0.1), drawn=(0, 2)
    ),
    Prebuilt(
        "gaussian",
        "A bell curve of any width",
        "Three units are enough for it. Feynman I.6.2.",
        feynman("I.6.2", 0.002),
    ),
    Prebuilt(
        "velocities",
        "Adding velocities",
        "Near the speed of light one and one is less than two. Feynman I.16.6.",
        feynman("I.16.6", 0.05),
        drawn=(1, 2),
    ),
    Prebuilt(
        "distance",
        "|x₁ − x₂|",
        "A kink: one head looks at the larger of two numbers.",
        lambda: ol.build("abs(x1 - x2)", [(0, 1)] * 2, 1e-6),
    ),
    Prebuilt(
        "sort",
        "Sort three numbers",
        "Seven heads take maxima; signs and sums do the rest.",
        lambda: ol.gallery.sort(3),
        output=1,
    ),
    Prebuilt(
        "histogram",
        "A histogram",
        "How often does my token occur? One head counts by dilution.",
        lambda: ol.gallery.histogram(6, 4),
    ),
)


ONWARDS = (
    ("Twelve proved layers to play with", "layers/index.html"),
    ("The theorem, and its proof", "theory/theorem.html"),
    ("How polished layers are found", "build/polished.html"),
    ("How a layer is proved", "trust/certificate.html"),
    ("Where one layer is provably expensive", "theory/limits.html"),
    ("Build your own: the tutorial", "start/tutorial.html"),
)


def build_all() -> None:
    """Build the twelve and the layers of the story, and print what was proved."""
    for entry in TWELVE:
        approximation = entry.make()
        shutil.rmtree(FOLDERS / entry.name, ignore_errors=True)
        folder = approximation.save(FOLDERS / entry.name)
        print(
            f"{entry.name:13}{approximation.certificate.headline:40}{approximation.parameters:6,} parameters", end="  "
        )
        print(ol.check(folder), flush=True)
    record = {
        "formula": FORMULA,
        "tolerance": TOLERANCE,
        "theorem_units": ol.plan(FORMULA, {"x": (0, 1)}, TOLERANCE, method="representative").units,
        "induction": {"layer": sequence_record(ol.gallery.any_length.induction(longest=8, vocabulary=3))},
        **{method: [certified_record(_sized(method, units)) for units in sizes] for method, sizes in SIZES.items()},
    }
    STORY.write_text(json.dumps(record, allow_nan=False) + "\n", encoding="utf-8")


def _sized(method: str, units: int) -> ol.Approximation:
    made = ol.build(FORMULA, {"x": (0, 1)}, TOLERANCE, method=method, construction="gates", units=units)
    print(f"story: {method}, {units} heads: {made.certificate.headline}", flush=True)
    return made


def write_pages(site: Path) -> None:
    """The story, and the twelve with a page each, into the folder of the site."""
    (site / "story.html").write_text(story_page(ONWARDS, home=("← Documentation", "index.html")), encoding="utf-8")
    exhibits = [
        Exhibit(entry.name, entry.title, entry.about, ol.load(FOLDERS / entry.name), entry.drawn, entry.output)
        for entry in TWELVE
    ]
    write_showcase(exhibits, site / "layers")


if __name__ == "__main__":
    build_all()
