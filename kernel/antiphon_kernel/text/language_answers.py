"""Answers of language servers, whose positions count units of UTF-16, or of UTF-32.

Every function raises LookupError, TypeError, ValueError or AttributeError where that is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from antiphon_kernel.text.findings import MOST_FINDINGS, CheckFinding, make_finding

_SEVERITIES: Final = {1: "error", 2: "warning", 3: "note"}
"""Those that are findings: what only is to be drawn paler is none."""

_MOST_CHOICES: Final = 100
_DETAIL: Final = 100
"""Code points of what is said beside a completion."""


class TextChoice(NamedTuple):
    """A text that can stand in the place of what has been typed of it."""

    text: str
    detail: str


def units(text: str, encoding: str) -> int:
    """Return how many units of an encoding a text has."""
    return len(text.encode(f"{encoding}-le")) // len("\0".encode(f"{encoding}-le"))


def code_points(text: str, units: int, encoding: str) -> int:
    """Return how many code points the first units of a text are."""
    encoding = f"{encoding}-le"
    size = len("\0".encode(encoding))
    return len(text.encode(encoding)[: size * units].decode(encoding, "ignore"))


def path_of(uri: str) -> Path:
    """Return the path of a file."""
    return Path(unquote(urlsplit(uri).path))


def diagnosed(diagnostics: Sequence[Any], text: str, encoding: str) -> Iterator[CheckFinding]:
    """Yield what a server has found in a text."""
    lines = text.split("\n")
    for one in diagnostics[:MOST_FINDINGS]:
        severity, start = _SEVERITIES.get(one.get("severity", 1)), one["range"]["start"]
        if severity is not None and start["line"] < len(lines):
            column = code_points(lines[start["line"]], start["character"], encoding)
            place = start["line"] + 1, column + 1
            yield make_finding("", *place, severity, one["message"], one.get("code"))


def locations(answer: Any) -> Iterator[tuple[Path, int]]:
    """Yield the files and lines of a definition."""
    for one in answer if isinstance(answer, list) else filter(None, [answer]):
        yield path_of(one["uri"]), one["range"]["start"]["line"]


def hover_text(answer: Any) -> str:
    """Return what a server says of a place; empty if nothing."""
    if isinstance(answer, list):
        return "\n\n".join(filter(None, map(hover_text, answer)))
    if isinstance(answer, dict):
        return hover_text(answer["contents"] if "contents" in answer else answer["value"])
    return (answer or "").strip()


def choices(answer: Any, before: str, encoding: str) -> tuple[str, list[TextChoice]]:
    """Return the end of a line up to the cursor that completions replace, and these, likely first.

    Args:
        before: the line up to the cursor.
    """
    start = len(before) - len(re.findall(r"\w*\Z", before)[0])
    found: dict[str, tuple[str, TextChoice]] = {}
    items = answer["items"] if isinstance(answer, dict) else answer or ()
    for item in items:
        edit = item.get("textEdit", {})
        if (replaced := edit.get("range") or edit.get("insert")) is not None:
            start = code_points(before, replaced["start"]["character"], encoding)
        text = edit.get("newText") or item.get("insertText") or item["label"]
        detail = " ".join((item.get("detail") or "").split())[:_DETAIL]
        found.setdefault(text, (item.get("sortText") or text, TextChoice(text, detail)))
    begun = before[start:]
    ranked = [one for _, one in sorted(found.values()) if one.text != begun]
    likely = [one for one in ranked if one.text.casefold().startswith(begun.casefold())]
    return begun, likely[:_MOST_CHOICES]
