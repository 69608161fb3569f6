"""A static explorer: ready-made layers with a page each, and a page of cards that leads to them. No server is needed.

All pages compute their layers in the browser (views/assets/layer.js). They share one copy of plotly's JavaScript, beside them.
"""

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from onelayer.approximation import Approximation
from onelayer.views.page_files import asset, plotly_source
from onelayer.views.pages import layer_record
from onelayer.views.report import page
from onelayer.views.scene import window

INLINE = "script-src 'unsafe-inline'"  # the policy of a page that is one file
RANGE_POINTS = 4000  # at which a range is looked for
LEAST_PERCENT = 0.01
SECTIONS = '<nav aria-label="sections">'


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A layer to show: the name of its page, a title and a sentence for its card, and which variables its small picture draws."""

    name: str
    title: str
    about: str
    approximation: Approximation
    drawn: tuple[int, int] = (0, 1)
    output: int = 0


def own(name: str) -> str:
    """The text of a file of the showcase."""
    return (Path(__file__).parent / "_showcase" / name).read_text(encoding="utf-8")


def write_showcase(exhibits: Sequence[Exhibit], folder: Path) -> list[Path]:
    """Write index.html, a page for every layer, and plotly.js; what is there is replaced. Returns the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plotly.js").write_text(plotly_source(), encoding="utf-8")
    written = [folder / "index.html", *(folder / f"{exhibit.name}.html" for exhibit in exhibits)]
    texts = [cards_page(exhibits), *map(_own_page, exhibits)]
    for path, text in zip(written, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return written


def _own_page(exhibit: Exhibit) -> str:
    """The report of a layer, which opens with the words and the variables of its card."""
    lead = f"<p><b>{html.escape(exhibit.title)}.</b> {html.escape(exhibit.about)}</p>"
    return shared(page(exhibit.approximation, planned=False, lead=lead, first=exhibit.drawn))


def shared(report: str) -> str:
    """A report that takes plotly from the file beside it, and leads back to the cards."""
    linked = report.replace(f"<script>{plotly_source()}</script>", '<script src="plotly.js"></script>')
    linked = linked.replace(INLINE, f"{INLINE} 'self'", 1)
    return linked.replace(SECTIONS, f'{SECTIONS}<a href="index.html">← All layers</a>', 1)


def cards_page(exhibits: Sequence[Exhibit]) -> str:
    """The page of cards, with a small picture each."""
    records = {exhibit.name: picture_record(exhibit) for exhibit in exhibits}
    return Template(own("showcase.html")).substitute(
        css=asset("story.css") + own("showcase.css"),
        cards="".join(map(_card, exhibits)),
        data=json.dumps(records, allow_nan=False).replace("<", "\\u003c"),
        scripts="\n".join(
            f"<script>{text}</script>"
            for text in (*map(asset, ("layer.js", "surface.js", "scheme.js")), own("showcase.js"))
        ),
    )


def picture_record(exhibit: Exhibit) -> dict[str, Any]:
    """What showcase.js needs for one picture."""
    low, high = window(exhibit.approximation.domain)
    return {
        "drawn": list(exhibit.drawn),
        "output": exhibit.output,
        "ends": [low.tolist(), high.tolist()],
        "layer": layer_record(exhibit.approximation),
    }


def _card(exhibit: Exhibit) -> str:
    a, c = exhibit.approximation, exhibit.approximation.certificate
    units = "1 unit" if a.units == 1 else f"{a.units:,} units"
    return (
        f'<li><a href="{exhibit.name}.html"><canvas id="{exhibit.name}" role="img" aria-label="picture of the layer"></canvas>'
        f"<h2>{html.escape(exhibit.title)}</h2></a><p>{html.escape(exhibit.about)}</p>"
        f'<p class="of"><code>{html.escape(a.target_text)}</code></p>'
        f'<p class="told"><span class="verdict {c.verdict}">{html.escape(c.headline)}</span> <span class="b">off by at most'
        f" {html.escape(c.bound_text)}</span>{_share(exhibit)}, {units}, {a.parameters:,} parameters</p></li>"
    )


def _share(exhibit: Exhibit) -> str:
    """The bound as a share of the range of T at random points; nothing for tokens, constants and domains without ends."""
    a, (low, high) = exhibit.approximation, window(exhibit.approximation.domain)
    if a.vocabulary is not None or not (np.array_equal(low, a.domain.lower) and np.array_equal(high, a.domain.upper)):
        return ""
    x = np.random.default_rng(0).uniform(low, high, (RANGE_POINTS, a.domain.dimension))
    T = np.asarray(a.fast()(x[a.domain.contains(x)])).reshape(-1, math.prod(a.output_shape))[:, exhibit.output]
    spread = float(np.ptp(T))
    if not spread > 0:
        return ""
    percent = 100 * a.certificate.bound / spread
    return (
        f" (about {percent:.2g}&nbsp;% of its range)"
        if percent >= LEAST_PERCENT
        else f" (below {LEAST_PERCENT}&nbsp;% of its range)"
    )
