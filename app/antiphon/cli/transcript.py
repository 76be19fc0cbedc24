"""Output of `antiphon tail`: a context as it grows, in lines that are never redrawn.

What is printed stays. Text that comes to the end of a block follows at once; a block whose line is
not finished keeps its place until another one has a whole line to show. What changes inside
printed text is said as lines that went and lines that came, when the editing has come to rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.text.sequence_diff import changed_ranges
from antiphon_kernel.types.block_metadata import CUT_OUT

REST_SECONDS: Final = 1.0
"""How long nobody has edited a block's printed text before its changes are said."""


@dataclass(slots=True)
class _Cell:
    """One block, and how much of it is printed."""

    header: Mapping[str, Any]
    version: int = 0
    text: str = ""
    said: str = ""
    """The text that was printed of it."""
    shown: int = 0
    """The part of `text`, from its start, in whose place `said` stands."""
    editors: dict[str, None] = field(default_factory=dict)
    edited: float = -math.inf
    structured: bool = False
    end_said: bool = False

    @property
    def name(self) -> str:
        """Return the words above it: its author, its kind unless it is a text, its name."""
        kind = self.header["kind"]
        what = "" if kind == "text" else f" · {kind.replace('_', ' ')}"
        return f"{self.header['username']}{what} · {self.header['name']}"

    @property
    def waits(self) -> bool:
        """Return whether it is not to be printed now: not sent yet, or cut out."""
        return is_cut_out(self.header) or (is_draft(self.header) and not self.structured)

    @property
    def rest(self) -> str:
        """Text that is not printed yet."""
        return self.text[self.shown :]

    @property
    def over(self) -> bool:
        return self.header["status"] in ("done", "error")

    def splice(self, offset: int, deleted: int, insert: str) -> bool:
        """Change the text; whether that concerns what is printed of it."""
        printed = offset < self.shown
        if printed:
            gone = min(self.shown, offset + deleted) - offset
            self.shown += len(insert) - gone
        self.text = self.text[:offset] + insert + self.text[offset + deleted :]
        return printed

    def replace(self, text: str) -> bool:
        """Another text as a whole; whether it does not just go on from what is printed."""
        goes_on = text.startswith(self.said)
        self.shown = len(self.said) if goes_on else len(text)
        self.text = text
        return not goes_on


class Transcript:
    """Turns events of a subscription to a context into text for a pipe or a terminal."""

    def __init__(self) -> None:
        self._cells: dict[str, _Cell] = {}
        self._open: str | None = None
        """The block whose last printed line is not finished."""
        self._last: str | None = None
        """The block that was printed last."""
        self._behind: dict[str, None] = {}
        """Blocks of which something is not printed yet."""
        self._edited: dict[str, None] = {}
        """Blocks that have changed where they were printed."""
        self._begun = False

    def knows(self, block: str) -> bool:
        """Return whether a block's text is known, so that a patch can be applied to it."""
        return block in self._cells

    def is_structured(self, block: str) -> bool:
        """Return whether a block's content is not one text, and has to be rendered."""
        return block in self._cells and self._cells[block].structured

    def remember(
        self,
        block: str,
        header: Mapping[str, Any],
        text: str,
        version: int,
        *,
        structured: bool = False,
    ) -> None:
        """A block that is not printed, but whose changes are."""
        cell = self._cells[block] = _Cell(header, version)
        cell.structured, cell.end_said = structured, cell.over
        cell.text = text
        if cell.waits:
            self._behind[block] = None
        else:
            cell.said, cell.shown = text, len(text)

    def skip(self, block: str, header: Mapping[str, Any], text: str) -> None:
        """Take the beginning of a block as printed."""
        self._cells[block] = _Cell(header, text=text, said=text, shown=len(text))

    def feed(self, event: Mapping[str, Any], now: float, *, rendered: str | None = None) -> str:
        """Return the text to print for an event.

        Args:
            event: of `block.subscribe`; one that is known already prints nothing.
            now: seconds on any clock.
            rendered: the content as text, where it is not one text by itself.
        """
        block, version = event["block_id"], event["version"]
        cell = self._cells.get(block)
        if cell is None:
            cell = self._cells[block] = _Cell(event["header"])
        if version <= cell.version:
            return ""
        cell.version = version
        was_cut_out = is_cut_out(cell.header)
        cell.header = event.get("header", cell.header)
        if rendered is not None:
            cell.structured = True
            edited = cell.replace(rendered)
        elif "content" in event:
            edited = cell.replace(event["content"])
        else:
            edited = False
            for one in event["splices"]:
                edited |= cell.splice(one["offset"], one["delete_count"], one["insert"])
        if edited or (was_cut_out and not cell.waits):
            cell.edited = now
            self._edited[block] = None
            if (editor := event.get("username")) is not None:
                cell.editors[editor] = None
        self._behind[block] = None
        # Text that is new at the ends of blocks, of the unfinished line's first.
        grown = [*self._grow([block])]
        if self._open is None:
            grown += self._grow(tuple(self._behind))
        return "".join(grown)

    def flush(self, now: float) -> str:
        """The changes inside printed text that have come to rest by `now`."""
        resting = [one for one in self._edited if now - self._cells[one].edited >= REST_SECONDS]
        return "".join(piece for one in resting for piece in self._correction(one))

    def next_flush_at(self) -> float | None:
        """Return the time at which `flush` has output, in the seconds of `feed`; None if never."""
        edited = [self._cells[one].edited for one in self._edited]
        return min(edited) + REST_SECONDS if edited else None

    def end(self) -> str:
        """Return the remaining output when no more events come."""
        changes = self.flush(math.inf)
        rest = [
            piece
            for block in tuple(self._behind)
            if not self._cells[block].waits
            for piece in self._print(block, self._cells[block].rest)
        ]
        return "".join([changes, *rest, *self._break()])

    def interject(self, text: str) -> str:
        """Return lines of somebody who is no author, on lines of their own."""
        self._last = None
        self._begun = True
        return "".join([*self._break(), sanitize(text), "\n"])

    def _grow(self, blocks: Sequence[str]) -> Iterator[str]:
        for block in blocks:
            cell = self._cells[block]
            if cell.waits:
                continue
            piece = cell.rest
            if self._open not in (None, block) and not cell.over:
                piece = piece[: piece.rfind("\n") + 1]
            yield from self._print(block, piece)
            if cell.over:
                yield from self._over(block, cell)
            if cell.shown == len(cell.text):
                del self._behind[block]

    def _print(self, block: str, piece: str) -> Iterator[str]:
        if not piece:
            return
        cell = self._cells[block]
        if self._last != block:
            yield from self._heading(cell.name)
            self._last = block
        cell.said += piece
        cell.shown += len(piece)
        self._open = None if piece.endswith("\n") else block
        yield sanitize(piece)

    def _over(self, block: str, cell: _Cell) -> Iterator[str]:
        """A block that is over gives its line away, and says so if it has not ended well."""
        if self._open == block:
            yield from self._break()
        if cell.end_said:
            return
        cell.end_said = True
        how = _ending(cell.header)
        if how is not None:
            if self._last != block:
                yield from self._heading(cell.name)
                self._last = block
            yield f"({sanitize(how)})\n"

    def _correction(self, block: str) -> Iterator[str]:
        del self._edited[block]
        cell = self._cells[block]
        if cell.waits:
            return
        now = cell.text[: cell.shown]
        if now == cell.said:
            return
        editors = ", ".join(cell.editors)
        yield from self._heading(cell.name + " · changed" + (f" by {editors}" if editors else ""))
        self._last = None
        for row in changed_lines(cell.said, now):
            yield sanitize(row) + "\n"
        cell.said = now
        cell.editors.clear()

    def _heading(self, name: str) -> Iterator[str]:
        yield from self._break()
        yield ("\n" if self._begun else "") + f"── {sanitize(name)}\n"
        self._begun = True

    def _break(self) -> Iterator[str]:
        if self._open is not None:
            yield "\n"
        self._open = None


def is_draft(header: Mapping[str, Any]) -> bool:
    """Return whether a block is a person's message that is still being written."""
    is_message = header["role"] == "user" and header["kind"] == "text"
    return is_message and header["status"] in ("pending", "running")


def is_cut_out(header: Mapping[str, Any]) -> bool:
    """Return whether people are not shown a block until it is brought back."""
    return header.get("excluded") is True and header.get("metadata", {}).get(CUT_OUT) is True


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Lines that went, with `- `, and that came in their place, with `+ `."""
    old, new = before.split("\n"), after.split("\n")
    for one in changed_ranges(old, new):
        yield from (f"- {line}" for line in old[one.start : one.end])
        yield from (f"+ {line}" for line in new[one.new_start : one.new_end])


def _ending(header: Mapping[str, Any]) -> str | None:
    """How a block ended, unless it ended well or its result says so."""
    if header["kind"] == "tool_call":
        return None
    if header.get("exit_code", 0) != 0:
        return f"exit code {header['exit_code']}"
    if header["status"] != "error":
        return None
    reason = header.get("stop_reason", "error")
    return f"{reason} by {header['stopped_by']}" if "stopped_by" in header else str(reason)
