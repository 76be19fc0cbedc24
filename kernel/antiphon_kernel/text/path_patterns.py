"""Patterns of paths, as configurations and searches have them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_PIECE: Final = re.compile(r"(\*\*/|\*\*|\*|\?|\{[^{}]*\})")
_MEANINGS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches_path(path: str, globs: Iterable[str], *, ignores_case: bool = False) -> bool:
    """Return whether a path matches one of these globs.

    `*` stands for a part of a name, `**` for any folders, `{a,b}` for either. One without a slash
    is a name in any folder. What is in a folder that matches matches, too.
    """
    pattern = _compiled(tuple(globs), ignores_case)
    return pattern.fullmatch(unicodedata.normalize("NFC", path)) is not None


@lru_cache(64)
def _compiled(globs: tuple[str, ...], ignores_case: bool) -> re.Pattern[str]:
    each = [unicodedata.normalize("NFC", one).rstrip("/") for one in globs]
    names = "|".join(_as_regex(one) for one in each if "/" not in one) or "(?!)"
    paths = "|".join(_as_regex(one.lstrip("/")) for one in each if "/" in one) or "(?!)"
    flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
    return re.compile(f"(?:(?:.*/)?(?:{names})|{paths})(?:/.*)?", flags)


def _as_regex(glob: str) -> str:
    pieces = []
    for piece in _PIECE.split(glob):
        if piece.startswith("{") and piece.endswith("}"):
            pieces.append(f"(?:{'|'.join(map(_as_regex, piece[1:-1].split(',')))})")
        else:
            pieces.append(_MEANINGS.get(piece) or re.escape(piece))
    return "".join(pieces)
