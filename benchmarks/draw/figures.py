"""`make figures`: computes every picture of the README and the docs from live layers and writes it to docs/figures.

    python benchmarks/draw/figures.py                 all of them (about two minutes on one core)
    python benchmarks/draw/figures.py --only hero     one, or several
    python benchmarks/draw/figures.py --list          their names

Needs kaleido (`pip install onelayer[figures]`) and Chromium or Chrome; set BROWSER_PATH if it is not found.
"""

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import kaleido
import plotly.graph_objects as go

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.views.paper_figures import attention_flow, passes

sys.path.extend(str(Path(__file__).resolve().parents[1] / folder) for folder in ("data", "measure"))

import casestudies
import explorer
import hero
import illustrations
from png import tightened

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def figure_1() -> go.Figure:
    """Figure 1 of the paper: the attention of the layer built for sin x1 + sin x2, at one point."""
    return attention_flow(_waves(), [1.0, 4.0])


def figure_2() -> go.Figure:
    """Figure 2 of the paper: both passes of the same layer at the same point, where the right answer is 1."""
    return passes(_waves(), [1.0, 4.0], y=1.0)


def _waves() -> ol.Approximation:
    return ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, tolerance=1e-3)


# file → the function that draws it
FIGURES: dict[str, Callable[[], go.Figure | bytes]] = {
    "hero.png": hero.hero,
    "hero-function.png": hero.surface,
    "hero-attention.png": hero.attention,
    "hero-error.svg": hero.error,
    "explorer.png": explorer.picture,
    "figure-1.svg": figure_1,
    "figure-2.svg": figure_2,
    "tutorial.svg": illustrations.tutorial,
    "gallery.svg": illustrations.gallery,
    "theorem.svg": illustrations.theorem,
    "certificate.svg": illustrations.certificate,
    "size.svg": casestudies.size,
    "training.svg": casestudies.training,
    "sorting.svg": casestudies.sorting,
    "tightness.svg": casestudies.tightness,
}


def write(name: str, folder: Path) -> Path:
    """Write one picture; its file is complete or absent."""
    figure = FIGURES[name]()
    path, fresh = folder / name, folder / f".new-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = figure if isinstance(figure, bytes) else _drawn(figure, path.suffix)
    try:
        fresh.write_bytes(drawn)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def _drawn(figure: go.Figure, kind: str) -> bytes:
    size = {"width": figure.layout.width, "height": figure.layout.height}
    drawn: bytes = kaleido.calc_fig_sync(figure, opts=size | {"format": kind[1:]})
    return tightened(drawn) if kind == ".png" else settled(drawn.decode()).encode()


def settled(svg: str) -> str:
    """The drawing with fixed names in place of plotly's random ones: drawn again, an unchanged picture is the same file."""
    names = re.findall(r'"(?:defs-|topdefs-|trace scatter trace)([0-9a-f]{6})"', svg)
    for number, name in enumerate(dict.fromkeys(names)):  # they follow a letter or a dash, as no coordinate does
        svg = re.sub(rf"(?<=[A-Za-z-]){name}(?![0-9.])", f"n{number:05}", svg)
    return svg


def chosen(names: Sequence[str]) -> list[str]:
    """The files of these figures, named with or without their endings; all of them if none is named."""
    known = {name.split(".")[0]: name for name in FIGURES}
    files = [known.get(name.split(".")[0]) for name in names]
    if None in files:
        wrong = names[files.index(None)]
        raise InputError(f"figures among {', '.join(known)}", f"{wrong!r}", "name some of these, or none for all")
    return [file for file in files if file] or list(FIGURES)


def find_browser() -> None:
    """Set BROWSER_PATH, by which kaleido finds the browser, unless it is set."""
    found = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise InputError("Chromium or Chrome, to draw pictures", "none", "install chromium, or set BROWSER_PATH")
    os.environ["BROWSER_PATH"] = found


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/figures from live layers.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these pictures")
    parser.add_argument("--list", action="store_true", help="print the names and draw nothing")
    parser.add_argument("--out", type=Path, default=FOLDER, help="write to this folder")
    args = parser.parse_args(given)
    try:
        files = chosen(args.only)
        if args.list:
            print("\n".join(files))
            return 0
        find_browser()
    except InputError as wrong:
        print(wrong)
        return 2
    kaleido.start_sync_server()  # one browser for all pictures
    try:
        for name in files:
            started = time.perf_counter()
            path = write(name, args.out)
            print(f"{name:16} {path.stat().st_size / 1000:6.0f} kB {time.perf_counter() - started:6.1f} s", flush=True)
    finally:
        kaleido.stop_sync_server()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
