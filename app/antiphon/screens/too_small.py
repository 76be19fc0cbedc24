"""Screen content for a terminal in which nothing else fits."""

from __future__ import annotations

from typing import Final

from textual.geometry import Size
from textual.widgets import Static

MIN_COLUMNS: Final = 40
MIN_ROWS: Final = 10


class TooSmall(Static):
    """Covers everything while the terminal is smaller than 40 × 10."""

    DEFAULT_CSS = """
    TooSmall {
        layer: cover; width: 100%; height: 100%; padding: 0 1; display: none;
        background: $background; color: $foreground;
    }
    TooSmall.-shown { display: block; }
    """

    def fit(self, size: Size) -> None:
        """Show or hide according to the size of the terminal."""
        small = size.width < MIN_COLUMNS or size.height < MIN_ROWS
        self.set_class(small, "-shown")
        if small:
            self.update(
                f"antiphon needs {MIN_COLUMNS} × {MIN_ROWS}; this terminal has"
                f" {size.width} × {size.height}. Make it larger."
            )
