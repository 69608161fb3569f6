"""The documentation as a site: `make docs` writes docs/_build/html, and a warning is an error.

The pages are Markdown and read just as well in the repository; nothing in the built pages is fetched from elsewhere.
"""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import onelayer

project = "onelayer"
author = "The onelayer authors"
copyright = f"{author}, MIT licence"
release = version = onelayer.__version__

sys.path.insert(0, str(Path(__file__).parent))
extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml"]
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links such as benchmarks.md#on-a-gpu
highlight_language = "text"  # code says its language
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "furo"
html_title = "onelayer"
html_static_path = ["_static"]
html_css_files = ["onelayer.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # summaries fetch pages, which a browser refuses to a page opened as a file


def as_rst(lines: list[str]) -> list[str]:
    """A docstring, which is plain text with `code`, as reStructuredText.

    Outside backticks, *, _ and | are mathematics, not markup. A paragraph that is indented or set in columns is kept
    verbatim.
    """
    written: list[str] = []
    for paragraph in "\n".join(lines).strip("\n").split("\n\n"):
        if re.search(r"^ |\S {3,}\S", paragraph, re.MULTILINE):
            written += ["::", "", *(f"    {line}" for line in paragraph.splitlines()), ""]
        else:
            written += [*map(_escaped, paragraph.splitlines()), ""]
    return written


def _escaped(line: str) -> str:
    pieces = re.split(r"`+([^`]+)`+", line)
    return "".join(f"``{p}``" if i % 2 else re.sub(r"([*_|\\])", r"\\\1", p) for i, p in enumerate(pieces))


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def _links(app: Any, page: str, source: list[str]) -> None:
    """Other files of the repository are downloads; the one that is a page itself has its place on the site."""
    source[0] = source[0].replace("](../../benchmarks/data/tracr.md)", "](tracr.md)")


def _reachable(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """What is wider than its frame can be scrolled with the keyboard, and captions say which headings they are."""
    frame = '<div class="table-wrapper'
    changes = (frame, f'<div tabindex="0" role="group" aria-label="table" {frame[5:]}'), ("<pre>", '<pre tabindex="0">')
    for old, new in (*changes, ('role="heading"', 'role="heading" aria-level="2"')):
        for part in ("body", "furo_navigation_tree"):
            context[part] = context.get(part, "").replace(old, new)


def _ready_made(app: Any, failure: Exception | None) -> None:
    """The story and the ready-made layers are pages of their own; docs/prebuilt.py writes them beside the others."""
    if failure is None and app.builder.format == "html":
        runpy.run_path(str(Path(__file__).parent / "prebuilt.py"))["write_pages"](Path(app.outdir))


def setup(app: Any) -> None:
    app.connect("html-page-context", _reachable, priority=900)  # behind the theme
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("source-read", _links)
    app.connect("build-finished", _ready_made)
