"""What language servers say: positions in UTF-16 code units, findings, places, completions.

What is not understood is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from antiphon_kernel.text.findings import MOST_FINDINGS, CheckFinding, make_finding
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through

_SEVERITIES: Final = {1: "error", 2: "warning", 3: "note"}
"""Those that are findings; what an editor may draw paler is none."""

_KINDS: Final = (
    "- text method function constructor field variable class interface module property unit value"
    " enum keyword snippet color file reference folder member constant struct event operator type"
).split()
"""Words for the kinds of completions, by their numbers."""

_MOST_CHOICES: Final = 100
_DETAIL: Final = 100
"""Code points of what is said beside a completion."""


class TextLocation(NamedTuple):
    """A place in a file, as a server names it."""

    uri: str
    line: int
    units: int
    """UTF-16 code units before it in its line."""


class TextChoice(NamedTuple):
    """A text that can stand in the place of what has been typed of it."""

    text: str
    detail: str


class SentText:
    """A text that a server was told; its positions are found in what has become of it."""

    def __init__(self, text: str, now: str) -> None:
        self._text, self._now = text, now
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._changes = plan_difference(text, now)

    def units(self, line: int, column: int) -> int:
        """Return how many UTF-16 code units stand before a column of a line."""
        return len(self.before(line, column).encode("utf-16-le")) // 2

    def before(self, line: int, column: int) -> str:
        """Return the text before a column of a line."""
        start = self._starts[min(line, len(self._starts) - 1)]
        return self._text[start : start + column]

    def place(self, line: int, units: int) -> tuple[int, int]:
        """Return line and column of what stood at a position, as the text is now."""
        start, end = [*self._starts, len(self._text)][min(line, len(self._starts) - 1) :][:2]
        before = self._text[start:end].rstrip("\n").encode("utf-16-le")[: 2 * max(units, 0)]
        offset = start + len(before.decode("utf-16-le", "ignore"))
        offset = shift_through(offset, self._changes, stick="right")
        return self._now.count("\n", 0, offset), offset - self._now.rfind("\n", 0, offset) - 1

    def findings(self, diagnostics: list[Any]) -> Iterator[CheckFinding]:
        """Yield what a server has found in the text."""
        for one in diagnostics[:MOST_FINDINGS]:
            match one:
                case {
                    "range": {"start": {"line": int(line), "character": int(units)}},
                    "message": str(message),
                } if (severity := _SEVERITIES.get(one.get("severity", 1))) is not None:
                    line, column = self.place(line, units)
                    yield make_finding("", line + 1, column + 1, severity, message, one.get("code"))


def locations(answer: Any) -> Iterator[TextLocation]:
    """Yield the places that a definition is at."""
    for one in answer if isinstance(answer, list) else [answer]:
        match one:
            case {
                "uri": str(uri),
                "range": {"start": {"line": int(line), "character": int(units)}},
            } | {
                "targetUri": str(uri),
                "targetSelectionRange": {"start": {"line": int(line), "character": int(units)}},
            }:
                yield TextLocation(uri, line, units)


def hover_text(answer: Any) -> str:
    """Return what a server says of a place; empty if nothing."""
    match answer:
        case str(text) | {"value": str(text)}:
            return text.strip()
        case {"contents": contents}:
            return hover_text(contents)
        case [*parts]:
            return "\n\n".join(filter(None, map(hover_text, parts)))
    return ""


def choices(answer: Any, before: str) -> tuple[str, list[TextChoice]]:
    """Return the end of a line up to the cursor that completions replace, and these, likely first.

    Args:
        before: the line up to the cursor.
    """
    begun = re.findall(r"\w*\Z", before)[0]
    word = len(before) - len(begun)
    kinds: dict[Any, str] = dict(enumerate(_KINDS))
    found: dict[str, tuple[tuple[bool, str], TextChoice]] = {}
    items = answer.get("items") if isinstance(answer, dict) else answer
    for item in items if isinstance(items, list) else ():
        match item:
            case {"label": str(text)}:
                rank = str(item.get("sortText") or text)
                match item:
                    case {
                        "textEdit": {
                            "newText": str(text),
                            "range": {"start": {"character": int(units)}},
                        }
                        | {"newText": str(text), "insert": {"start": {"character": int(units)}}}
                    }:
                        start = len(before.encode("utf-16-le")[: 2 * units].decode("utf-16-le"))
                        text = text.removeprefix(before[start:word])
                    case {"insertText": str(text)}:
                        pass
                if text != begun and text.casefold().startswith(begun.casefold()):
                    detail = item.get("detail") or kinds.get(item.get("kind"), "")
                    choice = TextChoice(text, " ".join(str(detail).split())[:_DETAIL])
                    found.setdefault(text, ((not text.startswith(begun), rank), choice))
    ranked = sorted(found.values(), key=lambda one: one[0])
    return begun, [choice for _, choice in ranked[:_MOST_CHOICES]]
