"""The rows of the terminal that an app draws to."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.strip import Strip


def terminal_rows(app: App[Any]) -> list[Strip]:
    """Compose the screen. The only public way to its text is a picture in SVG, which takes long."""
    return [Strip(row) for row in app.screen._compositor.render_strips()]  # noqa: SLF001
