"""Classification of keys as text."""

from __future__ import annotations

import unicodedata


def is_text_input(typed: str) -> bool:
    """Return whether what a key sends is text: all but C0, DEL and C1.

    `str.isprintable` is narrower: it leaves out spaces such as U+3000 and joiners such as U+200D.
    """
    return bool(typed) and all(unicodedata.category(character) != "Cc" for character in typed)
