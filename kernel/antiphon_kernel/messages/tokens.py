"""Estimate of tokens: one for text of any script, JSON, tool schemas, images and documents.

A tokenizer splits text into words, digits, punctuation and line ends, and these into pieces that
it knows. The estimate counts what it would split, each kind with the tokens that one costs on
average. The averages are fitted to `o200k_base` over text in 28 languages, code, JSON and logs;
`Calibration` corrects them for a model by what its provider reports. A model's windows, in tokens,
say how long its answer may be.
"""

from __future__ import annotations

import json
import math
import re
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon_kernel.messages.message import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    Thinking,
    ToolUse,
    UnknownBlock,
)
from antiphon_kernel.types.frozen_json import FrozenJson, JsonObject, thaw

_MARKED: Final = b"x"
_OTHER: Final = b"."


def _marks(characters: str) -> bytes:
    """Make a table for `bytes.translate` that marks these ASCII characters."""
    return bytes(_MARKED[0] if chr(byte) in characters else _OTHER[0] for byte in range(256))


_LOWER: Final = _marks(string.ascii_lowercase)
_UPPER: Final = _marks(string.ascii_uppercase)
_DIGITS: Final = _marks(string.digits)
_PUNCTUATION: Final = _marks(string.punctuation)
_BLANKS: Final = _marks(" \t")
_ASCII: Final = bytes(range(0x80))

_SCRIPTS: Final = (
    (0x80, 1.23),  # signs
    (0xC0, 0.38),  # Latin letters with marks, beside those of their word
    (0x370, 0.41),  # Greek
    (0x400, 0.31),  # Cyrillic
    (0x530, 0.41),  # Armenian, Hebrew, Arabic, scripts of India, Thai and its neighbours, Georgian
    (0x1E00, 0.38),  # Latin letters with marks
    (0x1F00, 0.41),
    (0x2000, 1.23),  # punctuation
    (0x2070, 1.3),  # symbols
    (0x2E80, 1.5),  # punctuation of East Asia
    (0x3040, 0.55),  # kana
    (0x3100, 1.5),
    (0x3400, 0.72),  # ideographs
    (0xA000, 0.66),
    (0xAC00, 0.66),  # Hangul
    (0xD7B0, 0.72),
    (0xFE00, 0.5),  # variation selectors
    (0xFE10, 1.5),  # full-width forms
    (0xFFF0, 1.9),  # emoji, and what is rare
)
"""First code points of ranges, and what a code point up to the next one costs."""
_FIRST: Final = tuple(first for first, _ in _SCRIPTS)

MESSAGE_COST: Final = 4
"""Of a message's role and borders."""
_CALL_COST: Final = 8
"""Of a tool use, a result or a tool's definition, beside its text."""

_IMAGE_COST: Final = 1600
"""Of a photograph or a screenshot: larger ones are scaled down."""
_PAGE_COST: Final = 2000
_UNKNOWN_PAGES: Final = 5

_UNKNOWN_WINDOW: Final = 8192

_STEADINESS: Final = 500
"""Tokens that must have been reported until reports weigh as much as the estimate itself."""
_MEMORY: Final = 0.9
"""Share of its weight that a report keeps when the next one comes."""
_LARGEST_ERROR: Final = 4
"""Factor by which a report is believed at most to differ from its estimate."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Correction of the estimate for one model, by the usage that its provider has reported."""

    estimated: float = _STEADINESS
    reported: float = _STEADINESS
    """Sums, of which older reports have lost weight."""

    @property
    def factor(self) -> float:
        return self.reported / self.estimated

    def apply(self, estimate: int) -> int:
        """Correct an estimate."""
        return math.ceil(estimate * self.factor)

    def updated(self, estimated: int, reported: int) -> Calibration:
        """Take in what a request was estimated at and what the provider counted.

        A count of 0 says nothing: some servers report none.
        """
        if estimated <= 0 or reported <= 0:
            return self
        believed = min(max(reported, estimated / _LARGEST_ERROR), estimated * _LARGEST_ERROR)
        return Calibration(self.estimated * _MEMORY + estimated, self.reported * _MEMORY + believed)


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text; at least 1 for one that is not empty."""
    encoded = b"\0" + text.encode("utf-8", "replace")
    lower = encoded.translate(_LOWER)
    words, two, three = (_runs(lower, length) for length in (1, 2, 3))
    upper = encoded.translate(_UPPER)
    digits = encoded.translate(_DIGITS)
    punctuation = encoded.translate(_PUNCTUATION).replace(_MARKED * 8, _MARKED)  # rulers are cheap
    signs = _runs(punctuation, 1)
    cost = (
        0.61 * words
        + 0.25 * (lower.count(_MARKED) - words - two - three)  # letters behind the third
        + 0.19 * _runs(upper, 1)
        + _runs(upper, 2)
        + 0.97 * _runs(digits, 1)
        + 0.36 * digits.count(_MARKED)
        + 0.71 * signs
        + 0.24 * (punctuation.count(_MARKED) - signs)
        + _runs(encoded.translate(_BLANKS), 2)
        + 0.41 * text.count("\n")
    )
    if not text.isascii():
        for character, count in Counter(encoded.translate(None, _ASCII).decode()).items():
            cost += count * _SCRIPTS[bisect_right(_FIRST, ord(character)) - 1][1]
    return max(1, math.ceil(cost)) if text else 0


def _runs(marks: bytes, length: int) -> int:
    """Count the runs of marks that have at least this length."""
    return marks.count(_OTHER + _MARKED * length)


def estimate_json(value: FrozenJson) -> int:
    """Estimate the tokens of a JSON value as it is written into a request."""
    return estimate_text(json.dumps(thaw(value), ensure_ascii=False))


def estimate_tools(schemas: Iterable[JsonObject]) -> int:
    """Estimate the tokens of the definitions of tools: name, description, JSON schema."""
    return sum(_CALL_COST + estimate_json(schema) for schema in schemas)


def estimate_message(message: Message, pages: Mapping[str, int] | None = None) -> int:
    """Estimate the tokens of a message; `pages` are those of documents, by hash."""
    return MESSAGE_COST + sum(estimate_block(block, pages or {}) for block in message.content)


def estimate_block(block: ContentBlock, pages: Mapping[str, int]) -> int:
    """Estimate the tokens of a content block, as `estimate_message` does."""
    match block:
        case TextBlock(text) | Thinking(text):
            return estimate_text(text)
        case ToolUse(_, name, parameters):
            return _CALL_COST + estimate_text(name) + estimate_json(parameters)
        case ImageBlock():
            return _IMAGE_COST
        case DocumentBlock(_, digest):
            return _PAGE_COST * pages.get(digest, _UNKNOWN_PAGES)
        case UnknownBlock(raw):
            return estimate_json(raw)


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """Most tokens that a model takes and gives; as given here, of a model that nobody knows."""

    input: int = _UNKNOWN_WINDOW
    """Of a request; an answer counts against it unless the windows are `separate`."""
    output: int = _UNKNOWN_WINDOW
    """Of an answer."""
    total: int | None = None
    """Of both together, where there is such a limit."""
    separate: bool = False
    """Whether an answer has a window of its own beside that of the input."""


def clamp_max_tokens(requested: int, window: ModelWindow, estimated: int) -> int:
    """Return how many tokens an answer may have: what was asked for, as far as there is room.

    Args:
        estimated: tokens of the input, with system prompt and tools; at least 1 is returned.
    """
    by_total = window.output if window.total is None else window.total - estimated
    by_input = window.input - estimated
    if window.separate and by_input >= 0:
        by_input = window.output
    return max(1, min(requested, window.output, by_input, by_total))


FILE_SIZE: Final = "file_size"
"""Key of `metadata` of a block with a document: its pages, as far as they are known."""

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_MOST_PAGES: Final = 2**31


def pages_metadata(data: bytes) -> dict[str, Any]:
    """Return what the metadata of a block says about its file, if that is a document.

    Pages are counted where they are not compressed.
    """
    pages = len(_PAGE.findall(data)) if data.startswith(b"%PDF") else 0
    return {FILE_SIZE: {"pages": pages}} if pages else {}


def stated_pages(metadata: Mapping[str, Any]) -> int | None:
    """Return the pages that the metadata of a block states; people write in it as they like."""
    stated = metadata.get(FILE_SIZE)
    pages = stated.get("pages") if isinstance(stated, Mapping) else None
    return pages if type(pages) is int and 0 < pages < _MOST_PAGES else None
