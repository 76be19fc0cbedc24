"""Headings and prompts of the document beside it."""

from antiphon.widgets.outline.outline import (
    LEAST_WIDTH,
    MOST_WIDTH,
    Outline,
    OutlineEntry,
    Prompt,
)
