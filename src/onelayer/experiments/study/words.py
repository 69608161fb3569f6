"""Durations in words."""


def duration(seconds: float) -> str:
    """How long, in words: 40 s, 5 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
