"""Axe-core, which finds what keeps people from using a page, for tests: `axe/` holds the published file and its licence."""

from pathlib import Path

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`))"""


def serious(page) -> list[str]:
    """What axe calls serious or critical, a line each."""
    page.evaluate(AXE)  # not a script tag: the page's own security policy refuses those
    return page.evaluate(RUN)
