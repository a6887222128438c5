"""A short English text that is always at hand: the licence of this repository."""

from pathlib import Path


def load_text() -> str:
    """Return the text in lower case, each run of white space being one space."""
    licence = Path(__file__).parents[2] / "LICENSE"
    return " ".join(licence.read_text().lower().split())
