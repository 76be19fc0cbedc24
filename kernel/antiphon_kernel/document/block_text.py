"""Code points here, UTF-8 bytes there: the one module that indexes CRDT text.

pycrdt counts a text in UTF-8 bytes. An index inside a character does not fail, it appends at the
end, and a delete inside one can take the rest of the text along; so every index is computed here,
from a mirror of the text that is kept up to date by the deltas of each transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pycrdt import Text

from antiphon_kernel.types.records import TextSplice

RUN_BYTES = 16_384
"""Appended text alternates a formatting attribute every so many bytes.

Without it, all text that one client appends merges into one item, and an append then costs as much
as that item is long (3 ms at 1 MB); with it, 36 us at any length, for 0.4 % more state.
"""

RUN_ATTRIBUTE = "s"


class TextMirror:
    """The text of one block as a string, without copying it for each append."""

    __slots__ = ("_ascii", "_head", "_tail", "length", "size")

    def __init__(self, text: str) -> None:
        self._tail: list[str] = []
        self.replace(text)

    @property
    def text(self) -> str:
        if self._tail:
            self._head += "".join(self._tail)
            self._tail.clear()
        return self._head

    def replace(self, text: str) -> None:
        """Follow a change of the whole text."""
        self._head = text
        self._tail.clear()
        self.length = len(text)
        """Code points."""
        self.size = _utf8_length(text)
        """UTF-8 bytes."""
        self._ascii = text.isascii()

    def append(self, inserted: str) -> None:
        """Follow an insertion at the end."""
        self._tail.append(inserted)
        self.length += len(inserted)
        self.size += _utf8_length(inserted)
        self._ascii = self._ascii and inserted.isascii()

    def splice(self, splice: TextSplice) -> None:
        """Follow a change that counts code points."""
        offset, inserted = splice.offset, splice.inserted
        if offset == self.length and not splice.deleted:
            self.append(inserted)
            return
        text, end = self.text, splice.offset + splice.deleted
        deleted = text[offset:end]
        self._head = text[:offset] + inserted + text[end:]
        self.length += len(inserted) - splice.deleted
        self.size += _utf8_length(inserted) - _utf8_length(deleted)
        if self._ascii:
            self._ascii = inserted.isascii()
        elif not deleted.isascii():
            self._ascii = self._head.isascii()

    def byte_range(self, offset: int, count: int) -> tuple[int, int]:
        """Return start and end of `count` code points from `offset` on, in UTF-8 bytes.

        Raises:
            ValueError: if the text does not reach that far.
        """
        length = self.length
        if not 0 <= offset <= offset + count <= length:
            raise ValueError(
                f"the range {offset} to {offset + count} is outside a text of {length} code points"
            )
        if self._ascii:
            return offset, offset + count
        if offset + count == length and count <= 1:
            last = _utf8_length(self.text[offset:]) if count else 0
            return self.size - last, self.size
        start = _utf8_length(self.text[:offset])
        return start, start + _utf8_length(self.text[offset : offset + count])

    def apply(self, delta: Iterable[Mapping[str, Any]]) -> tuple[TextSplice, ...]:
        """Follow a delta that counts bytes; the same as splices that count code points."""
        splices: list[TextSplice] = []
        at = 0  # in bytes of the text as changed so far
        for step in delta:
            if "retain" in step:
                at += int(step["retain"])
                continue
            if "insert" in step:
                inserted = step["insert"]
                if inserted == "":
                    continue
                if not isinstance(inserted, str):
                    raise TypeError(f"a text holds only text, not {type(inserted).__name__}")
                splice = TextSplice(self._code_points(at)[0], 0, inserted)
                at += _utf8_length(inserted)
            elif step["delete"]:
                start, end = self._code_points(at, int(step["delete"]))
                splice = TextSplice(start, end - start, "")
            else:
                continue
            splices.append(splice)
            self.splice(splice)
        return tuple(_joined(splices))

    def _code_points(self, at: int, count: int = 0) -> tuple[int, int]:
        """Start and end of `count` bytes from `at` on, in code points."""
        if at == self.size:
            return self.length, self.length
        if self._ascii:
            return at, at + count
        encoded = self.text.encode()
        start = len(encoded[:at].decode())
        return start, start + len(encoded[at : at + count].decode())


def takes_the_end(delta: Iterable[Mapping[str, Any]], size: int) -> bool:
    """Return whether a delta that counts bytes removes the end of a text.

    Args:
        size: UTF-8 bytes of the text as the delta leaves it.
    """
    at, removes = 0, False
    for step in delta:
        if "retain" in step:
            at += int(step["retain"])
            removes = False
        elif "insert" in step:
            at += _utf8_length(step["insert"])
        elif step["delete"]:
            removes = True
    return removes and at == size


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _joined(splices: list[TextSplice]) -> list[TextSplice]:
    """A deletion and an insertion at one place become one splice."""
    joined: list[TextSplice] = []
    for splice in splices:
        last = joined[-1] if joined else None
        if last is not None and not last.deleted and splice.deleted and not splice.inserted:
            if splice.offset == last.offset + len(last.inserted):
                joined[-1] = TextSplice(last.offset, splice.deleted, last.inserted)
                continue
        if last is not None and last.deleted and not last.inserted and not splice.deleted:
            if splice.offset == last.offset:
                joined[-1] = TextSplice(last.offset, last.deleted, splice.inserted)
                continue
        joined.append(splice)
    return joined


def append_text(text: Text, inserted: str) -> None:
    """Write at the end, in runs that stay cheap to append to."""
    if inserted:
        at = len(text)
        text.insert(at, inserted, {RUN_ATTRIBUTE: str(at // RUN_BYTES % 2)})


def splice_text(text: Text, mirror: TextMirror, offset: int, deleted: int, inserted: str) -> None:
    """Replace `deleted` code points at code point `offset` by `inserted`, in the mirror too.

    Raises:
        ValueError: if the range is not inside the text, or `inserted` holds half a surrogate pair.
    """
    if deleted < 0:
        raise ValueError(f"cannot delete {deleted} code points")
    start, end = mirror.byte_range(offset, deleted)
    inserted.encode()
    if end > start:
        del text[start:end]
    if inserted:
        text.insert(start, inserted)
    mirror.splice(TextSplice(offset, deleted, inserted))


def splice_text_all(text: Text, mirror: TextMirror, splices: Sequence[TextSplice]) -> None:
    """Sequential splices, in the mirror too, without counting the text for each of them.

    Raises:
        ValueError: if one is outside the text or before the one in front of it, or holds half a
            surrogate pair; then nothing is written.
    """
    before = mirror.text
    kept: list[str] = []
    at = reached = 0  # code points of the text before, and of the text as it becomes
    for one in splices:
        start = at + one.offset - reached
        if not at <= start <= start + one.deleted <= len(before):
            raise ValueError(f"{one} is outside the text, or before a splice in front of it")
        one.inserted.encode()
        kept.append(before[at:start])
        at = start + one.deleted
        reached = one.offset + len(one.inserted)
    at = size = 0
    for one, same in zip(splices, kept, strict=True):
        at += len(same)
        size += _utf8_length(same)
        if one.deleted:
            del text[size : size + _utf8_length(before[at : at + one.deleted])]
            at += one.deleted
        if one.inserted:
            text.insert(size, one.inserted)
            size += _utf8_length(one.inserted)
    changed = "".join(same + one.inserted for one, same in zip(splices, kept, strict=True))
    mirror.replace(changed + before[at:])
