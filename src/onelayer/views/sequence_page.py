"""The report of a layer for sequences of any length: what is proved for all of them, and the layer at any one that is typed.

The page computes attention and answers itself, from the layer's own weights (assets/sequence.js).
"""

import html
from typing import Any

from ..sequence_layer import SequenceLayer
from . import certificate_text
from .costs import size_table
from .pages import PLAIN_SCRIPTS, Page, figures_data
from .sections import certificate_section, facts, figure_place, weights_section
from .sequence_record import MOST_SEQUENCE_WEIGHTS, sequence_record

SCRIPTS = ("layer.js", "sequence.js", "sequence_text.js", "sequence_view.js", "typing.js", *PLAIN_SCRIPTS)


def sequence_page(layer: SequenceLayer) -> str:
    """The report as text."""
    figures: dict[str, Any] = {}
    sections = [
        (
            "sequence",
            "A text, token by token" if _language(layer) else "The layer at a sequence",
            sequence_section(layer),
        ),
        ("heads", "What the heads do", f"<p>{html.escape(layer.facts.story)}</p>" if layer.facts.story else ""),
        ("weights", "Weights and spectra", weights_section(layer, figures)),
        ("certificate", "Certificate", certificate_section(layer)),
        ("size", "Size and cost", size_table(layer)._repr_html_()),
    ]
    data = figures_data(figures) | {"sequence": sequence_record(layer)}
    shown = [*facts(layer), (f"{layer.longest:,}", "tokens in the longest sequence")]
    styles = ("report.css", "sequence.css")
    return Page(title_of(layer), "one layer", intro(layer), shown, sections, data, SCRIPTS, styles).render()


def title_of(layer: SequenceLayer) -> str:
    """What the layer computes, as a title; a formula stays as it is."""
    text = layer.description.text
    return text if layer.description.kind == "set" else text[:1].upper() + text[1:]


def intro(layer: SequenceLayer) -> str:
    """The verdict, and for which sequences it is stated."""
    c = layer.certificate
    verdict = f'<p><span class="verdict {c.verdict}">{html.escape(c.headline)}</span></p>'
    return f"{verdict}\n<p>{html.escape(certificate_text.statement(layer))}</p>"


def sequence_section(layer: SequenceLayer) -> str:
    """A field for the sequence, its tokens as cells, the answers, and the attention weights of the chosen one."""
    if layer.parameters > MOST_SEQUENCE_WEIGHTS:
        text = f"A page holds at most {MOST_SEQUENCE_WEIGHTS:,} weights; this layer has {layer.parameters:,}."
        return f"<p>{text} In Python, <code>layer.attention(x)</code> has the attention weights at any sequence.</p>"
    single = layer.certificate.arithmetic == "float32"
    note = "The page computes in double precision" + (", the layer itself in float32." if single else ".")
    grey = "Grey is hidden: a position does not see later ones." if layer.model.config.causal else ""
    asking = figure_place("attention", "Attention weights of the position that asks")
    maps = (
        f'<h3 id="attention-title"></h3>{asking}<p class="note">{grey}</p>'
        '<h3 id="map-title"></h3><p class="note" id="map-note"></p>'
        + figure_place("map", "Attention weights of all positions, in one head")
    )
    return (
        f"{_form(layer)}"
        '<p id="sequence-status" class="note" role="status" aria-live="polite"></p>'
        '<div id="cells" role="listbox" aria-label="The position that asks" aria-orientation="horizontal"></div>'
        f'<p id="value" aria-live="{"off" if _language(layer) else "polite"}"></p>'
        f'<p class="note">Click a token, or use the arrow keys. {_bars(layer)} {note}</p>'
        f"{_next(layer)}{maps}"
    )


def _language(layer: SequenceLayer) -> bool:
    return layer.description.kind == "language"


def _bars(layer: SequenceLayer) -> str:
    hatched = ", and hatched tokens are hidden" if layer.model.config.causal else ""
    return f"The bar on a token is the weight that the chosen head gives it{hatched}."


def _form(layer: SequenceLayer) -> str:
    name = "Prompt" if _language(layer) else "Sequence"
    field = (
        f'<label class="entry"><span>{name}</span><textarea id="typed" rows="2" spellcheck="false" autocapitalize="off"'
        ' autocomplete="off" aria-describedby="sequence-status"></textarea></label>'
    )
    heads = layer.model.config.heads
    options = "".join(f'<option value="{h}">head {h + 1}</option>' for h in range(heads))
    chosen = f'<label><span>Head</span><select id="head">{options}</select></label>' if heads > 1 else ""
    return f'<form id="sequence-form">{field}<div class="controls">{_buttons(layer)}{chosen}</div></form>'


def _buttons(layer: SequenceLayer) -> str:
    if _language(layer):
        return (
            '<button type="button" id="type-on">Type on</button>'
            '<label><span>Temperature</span><input type="range" id="temperature" min="0" max="2" step="0.05" value="0.8">'
            '<output id="temperature-shown" for="temperature">0.8</output></label>'
            '<label><span>Seed</span><input type="number" id="seed" min="0" max="999999" step="1" value="0"></label>'
        )
    words = (("random", "Random"), ("longer", "Longer"), ("shorter", "Shorter"))
    return "".join(f'<button type="button" id="{name}">{text}</button>' for name, text in words)


def _next(layer: SequenceLayer) -> str:
    """Where the probabilities of the next token are drawn."""
    if not _language(layer):
        return ""
    return '<h3 id="next-title"></h3>' + figure_place("next", "Probabilities of the next token")
