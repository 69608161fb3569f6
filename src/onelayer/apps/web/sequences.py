"""The explorer's page of layers for sequences: a fixed menu, each entry built once and kept."""

import html
from functools import cache
from typing import Any

MENU: dict[str, tuple[int, ...]] = {  # the longest length and other sizes; visitors choose a name, nothing else
    "running_max": (24,),
    "depth": (24,),
    "histogram": (24, 6),
    "look_up": (24, 4, 5),
    "sort": (5,),
}


@cache
def sequence_view(name: str) -> dict[str, Any]:
    """What the page shows of an entry of the menu: HTML, and the weights as numbers."""
    from ...construction.gallery import any_length  # loads torch, which the server does without
    from ...views.pages import facts_html
    from ...views.sections import certificate_section, facts
    from ...views.sequence_page import intro, sequence_section, title_of
    from ...views.sequence_record import sequence_record

    layer = getattr(any_length, name)(*MENU[name])
    return {
        "title": title_of(layer),
        "intro": intro(layer),
        "facts": facts_html(facts(layer)),
        "sequence": sequence_section(layer),
        "story": f"<p>{html.escape(layer.facts.story)}</p>",
        "certificate": certificate_section(layer),
        "record": sequence_record(layer),
    }
