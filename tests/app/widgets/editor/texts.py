"""Texts that editors get wrong."""

from __future__ import annotations

from hypothesis import strategies as st

from antiphon.widgets.editor.cell_document import CellWrappedDocument
from antiphon_kernel.types.records import TextSplice

PIECES = (
    "a",
    "word ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x1b[31m",
    "\x85",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u200b",
    "é",
    "e\u0301",
    "中文",
    "한",
    "👍",
    "👍🏽",
    "👩‍👩‍👧",
    "🇩🇪",
    "❤️",
    "\u200d",
    "ﷺ",
    "नमस्ते",
    "longwordwithoutanyspacestobreakat",
)

texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


def splice_of(text: str, where: float, length: float, inserted: str) -> TextSplice:
    """A splice of `text` from fractions of its length."""
    offset = round(where * len(text))
    return TextSplice(offset, round(length * (len(text) - offset)), inserted)


fractions = st.floats(0, 1)
edits = st.tuples(fractions, fractions.map(lambda size: size**3), texts)


def rows_of(wrap: CellWrappedDocument) -> list[list[str]]:
    """The rows of each line, as they are drawn."""
    return [
        [wrap.cells(line, row).shown for row in range(len(wrap.get_offsets(line)) + 1)]
        for line in range(wrap.document.line_count)
    ]


def applied(text: str, *splices: TextSplice) -> str:
    for one in splices:
        text = text[: one.offset] + one.inserted + text[one.offset + one.deleted :]
    return text
