"""Facts: how a layer came about, and how large its numbers are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """How an approximation came about, kept in its folder: heads in order as (kind, count), Σ|c|, seconds, units.

    Sizes of the weights are None where they are not known, as for trained layers.
    """

    method: str
    construction: str
    layout: str  # "token", "wide" or "heads", or "position": every token is read out
    heads: tuple[tuple[str, int], ...]
    units: int
    total: float | None = None  # Σ|c|: how much the heads cancel
    seconds: float = 0.0
    seed: int = 0
    places: tuple[int, ...] = (0,)  # rows of the model that hold the outputs
    notes: tuple[str, ...] = ()
    amplitude: float | None = (
        None  # the most that all heads together contribute: float32 rounding is proportional to it
    )
    largest_score: float | None = None  # sharp heads make certificates expensive
    story: str = ""  # what every head does, in words

    @property
    def sizes(self) -> list[tuple[str, str]]:
        """Rows of a table: Σ|c|, amplitude and largest score, those that are known."""
        sums = {"Σ|c|": self.total, "amplitude": self.amplitude}
        known = {name: f"{size:.4g}" for name, size in sums.items() if size is not None}
        rows = [(", ".join(known), ", ".join(known.values()))] if known else []
        return rows if self.largest_score is None else [*rows, ("largest score", f"{self.largest_score:.4g}")]
