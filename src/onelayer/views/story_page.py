"""The story: a page for students that asks why one attention layer can be any function, in seven steps with live pictures.

The page computes all its layers itself, by the ordinary softmax (assets/layer.js). Those of the last steps are ready-made and
proved: assets/story.json, written by `python docs/prebuilt.py`. The page needs no other file and no network.
"""

import html
import json
from collections.abc import Sequence
from string import Template
from typing import Any

from .page_files import asset

SCRIPTS = (
    "scheme.js",
    "layer.js",
    "sequence.js",
    "story_layers.js",
    "story_plot.js",
    "story_gates.js",
    "story_proved.js",
    "story_limits.js",
    "story.js",
)
Links = Sequence[tuple[str, str]]  # (text, address)


def story_page(links: Links = (), assets: str | None = None, home: tuple[str, str] | None = None) -> str:
    """The story as text. `links` lead on from its end, `home` (text, address) back from its top.

    `assets` is where its scripts are; None puts them into the page.
    """
    inside = "unsafe-inline" if assets is None else "self"
    return Template(asset("story.html")).substitute(
        policy=f"default-src 'none'; script-src '{inside}'; style-src 'unsafe-inline'; img-src data:",
        css=asset("story.css"),
        home="" if home is None else f"<p>{_link(*home)}</p>",
        links="".join(f"<li>{_link(text, address)}</li>" for text, address in links),
        data=asset("story.json").replace("<", "\\u003c"),
        scripts="\n".join(_script(name, assets) for name in SCRIPTS),
    )


def _link(text: str, address: str) -> str:
    return f'<a href="{html.escape(address)}">{html.escape(text)}</a>'


def _script(name: str, assets: str | None) -> str:
    return f"<script>{asset(name)}</script>" if assets is None else f'<script src="{assets}{name}"></script>'


def story_record() -> dict[str, Any]:
    """What story.json holds."""
    return dict(json.loads(asset("story.json")))
