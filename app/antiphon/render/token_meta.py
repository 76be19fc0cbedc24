"""Contract between the Markdown parser and the code that draws its tokens.

Kept apart from the parser, so that drawing code can be imported without it.
"""

from __future__ import annotations

from typing import Final

AT: Final = "at"
"""Key in an inline token's `meta`: where in the inline content its source starts."""

TARGET: Final = "target"
"""Key in the `meta` of an image and of a link's closing token: start and end of the address in the
inline content; not there if there is no address."""

DEEPEST: Final = 60
"""Levels of nesting; what is nested deeper is not parsed."""
