"""The pictures of docs/figures: every one is drawn by `make figures`, and PNG files lose nothing when they get smaller."""

import re
import struct
import zlib

import numpy as np
import pytest

import figures
import png
from figures import FIGURES, FOLDER, chosen, main
from function_table import ROWS
from onelayer.common.errors import InputError
from onelayer.experiments.study.sweep import sweep_of
from pages import ROOT
from sweeps import STUDIES


def as_chromium_writes(pixels: np.ndarray, how: list[int]) -> bytes:
    """A PNG of RGBA pixels whose rows have the filters `how` (0 to 2)."""
    rows = []
    for y, row in enumerate(pixels):
        left = np.concatenate([np.zeros((1, 4), np.uint8), row[:-1]])
        above = pixels[y - 1] if y else np.zeros_like(row)
        rows.append(bytes([how[y]]) + (row - (np.zeros_like(row), left, above)[how[y]]).tobytes())
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 0)), (b"IEND", b""))
    return png.SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def read_rgb(data: bytes) -> np.ndarray:
    """A PNG of RGB pixels with any filters, pixel by pixel as the standard says."""
    at, compressed = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, chunk = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.pack(">I", zlib.crc32(kind + chunk)) == data[at + 8 + length : at + 12 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", chunk[:10])
        compressed += chunk if kind == b"IDAT" else b""
        at += 12 + length
    assert colour == 2
    raw = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(height, -1).astype(int)
    out = np.zeros((height + 1, width + 1, 3), int)  # a border of zeros above and to the left
    for y, row in enumerate(raw):
        for x, value in enumerate(row[1:].reshape(width, 3)):
            a, b, c = out[y + 1, x], out[y, x + 1], out[y, x]
            p = a + b - c
            nearest = np.where(abs(p - b) <= abs(p - c), b, c)
            paeth = np.where((abs(p - a) <= abs(p - b)) & (abs(p - a) <= abs(p - c)), a, nearest)
            out[y + 1, x + 1] = (value + (0 * a, a, b, (a + b) // 2, paeth)[row[0]]) & 255
    return out[1:, 1:]


def test_smaller_png_files_hold_the_same_pixels():
    rng = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(24) * 3, np.arange(17) * 5)[..., None] + np.array([0, 40, 90])
    pixels = np.dstack([(smooth + rng.integers(0, 3, smooth.shape)) & 255, np.full((24, 17), 255)]).astype(np.uint8)
    given = as_chromium_writes(pixels, [y % 3 for y in range(24)])
    found = png.tightened(given)
    assert len(found) < len(given)
    assert np.array_equal(read_rgb(found), pixels[..., :3])


def test_a_transparent_png_stays_as_it_is():
    pixels = np.zeros((4, 4, 4), np.uint8)
    given = as_chromium_writes(pixels, [0] * 4)
    assert png.tightened(given) == given


def test_drawings_lose_their_random_names_and_nothing_else():
    svg = '<defs id="defs-471874"><g id="clip471874x" class="trace scatter trace00ab12"/><path d="M0.471874,5L7,1"/></defs>'
    fixed = '<defs id="defs-n00000"><g id="clipn00000x" class="trace scatter tracen00001"/><path d="M0.471874,5L7,1"/></defs>'
    assert figures.settled(svg) == fixed
    assert figures.settled(fixed) == fixed


def test_every_picture_in_docs_is_drawn_by_make_figures():
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == set(FIGURES)
    drawn = [f"{row.name}.svg" for row in ROWS]  # test_functions_page.py looks at these
    studied = [f"{name}-{n + 1}.svg" for name in STUDIES for n in range(len(sweep_of(f"builtin:{name}").figures))]
    assert {path.name for path in (ROOT / "docs" / "studies").glob("*.svg")} <= set(studied)
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            assert link.split("/")[-1] in {*FIGURES, *studied, *drawn}, (page.name, link)
    assert (FOLDER / "hero.png").stat().st_size < 300_000
    makefile = (ROOT / "Makefile").read_text()
    assert "benchmarks/draw/figures.py" in makefile
    assert "benchmarks/draw/curves.py" in makefile
    assert "benchmarks/measure/sweeps.py --draw" in makefile


def test_choosing(capsys):
    assert chosen([]) == list(FIGURES)
    assert chosen(["hero", "size.svg"]) == ["hero.png", "size.svg"]
    with pytest.raises(InputError, match="hero"):
        chosen(["heros"])
    assert main(["--list"]) == 0
    assert main(["--only", "heros"]) == 2
    assert "asked: figures among" in capsys.readouterr().out


def test_without_a_browser_there_is_one_clear_line(monkeypatch, capsys):
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    monkeypatch.setattr(figures.shutil, "which", lambda name: None)
    assert main([]) == 2
    assert "install chromium" in capsys.readouterr().out
