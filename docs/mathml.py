"""Formulas of the pages, $…$ and $$…$$, as MathML: browsers set it themselves, without a script or a font from elsewhere."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

SPACING = (  # what the converter leaves to the browser, and the browser cannot know
    (r"<mi>([;:])</mi>", r"<mo>\1</mo>"),
    (
        r"<mo( stretchy=\"false\")?>(&#x0007C;|&#x0002F;)</mo>",
        r'<mo stretchy="false" lspace="0" rspace="0">\2</mo>',
    ),  # | and /
    (r"((?:&#x00028;|\[|&#x0002C;|&#x0003D;)</mo>)<mo>(&#x02212;)</mo>", r'\1<mo form="prefix">\2</mo>'),  # (−1
    (r"(?<=[nibp]>)(<mi>[a-z]{2,}</mi>)", r'<mspace width="0.17em"/>\1'),  # 2 ln
    (r"(<mi>[a-z]{2,}</mi>)(?=<m[a-z]{1,4}>)", r'\1<mspace width="0.17em"/>'),  # ln 2
)


def mathml(formula: str, display: str) -> str:
    """One formula; a command that the converter does not know is an error, not a word on the page."""
    text = convert(formula, display=display)
    if "\\" in text:
        raise ValueError(f"no MathML for {formula}")
    for pattern, better in SPACING:
        text = re.sub(pattern, better, text)
    return text


def _inline(self: Any, node: Any) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: Any, node: Any) -> None:
    frame = (
        '<div class="math" tabindex="0" role="group" aria-label="formula">'  # a wide one scrolls, with the keyboard too
    )
    self.body.append(f"{frame}{mathml(node.astext(), 'block')}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
