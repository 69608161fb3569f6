"""The explorer's page of layers for sequences: a fixed menu, each entry built once and kept."""

import html
from collections.abc import Callable
from functools import cache
from typing import Any

from ...construction.gallery import any_length
from ...sequence_layer import SequenceLayer
from ...views.pages import facts_html
from ...views.sections import certificate_section, facts
from ...views.sequence_page import intro, sequence_section, title_of
from ...views.sequence_record import sequence_record

MENU: dict[str, Callable[[], SequenceLayer]] = {  # visitors choose a name, nothing else
    "running_max": lambda: any_length.running_max(24),
    "depth": lambda: any_length.depth(24),
    "histogram": lambda: any_length.histogram(24, 6),
    "look_up": lambda: any_length.look_up(24, 4, 5),
    "sort": lambda: any_length.sort(5),
}


@cache
def sequence_view(name: str) -> dict[str, Any]:
    """What the page shows of an entry of the menu: HTML, and the weights as numbers."""
    layer = MENU[name]()
    return {
        "title": title_of(layer),
        "intro": intro(layer),
        "facts": facts_html(facts(layer)),
        "sequence": sequence_section(layer),
        "story": f"<p>{html.escape(layer.facts.story)}</p>",
        "certificate": certificate_section(layer),
        "record": sequence_record(layer),
    }
