"""The blocks of a document as they are read: order, headers, schemas and texts.

What has been read is kept, and kept up to date by the events of each transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pycrdt import Doc, Map, MapEvent, Text, TextEvent

from antiphon_kernel.document.block_order import BlockOrder
from antiphon_kernel.document.block_text import TextMirror, takes_the_end
from antiphon_kernel.document.changes import (
    ContentChange,
    DocumentChange,
    HeaderChange,
    TextChange,
    content_changes,
)
from antiphon_kernel.document.containers import Container, find_container
from antiphon_kernel.document.header import CONTENT, SCHEMA, read_header
from antiphon_kernel.document.schema import TEXT, Schema, decode_schema, names_of, path_of
from antiphon_kernel.types.records import BlockHeader, TextSplice

_WRITTEN_KEPT = 64
"""Texts that are kept at hand for writing."""


class BlockCache:
    """Cache of the root map ``blocks``. Raises KeyError where there is no such block.

    `section` is the path of a text inside a block's content; None is a content that is one text.
    """

    def __init__(self, doc: Doc[Any], stored: Map[Any]) -> None:
        self.order = BlockOrder()
        self._doc = doc
        self._blocks = stored
        self._headers: dict[str, BlockHeader] = {}
        self._schemas: dict[str, Schema] = {}
        self._mirrors: dict[str, TextMirror] = {}
        self._spliced: dict[str, list[TextSplice]] = {}
        self._written: dict[str, Text] = {}
        self._clear_ends: set[str] = set()

    def preload(self, headers: Iterable[BlockHeader]) -> None:
        """Know everything that is stored already.

        Args:
            headers: those that are known; others are read when asked for.
        """
        self._headers = known = {header.id: header for header in headers}
        with self._doc.transaction():
            others = [key for key in self._blocks.keys() if key not in known]  # noqa: SIM118
            blocks = [key for key in others if self._is_block(key)]
            order = [(key, self._order_key(key)) for key in blocks]
        self.order.add(order + [(one.id, one.order) for one in known.values()])

    # Reading

    def header(self, block: str) -> BlockHeader:
        """Raises KeyError if there is no such block."""
        header = self._headers.get(block)
        if header is None:
            header = self._headers[block] = read_header(block, self.fields(block))
        return header

    def fields(self, block: str) -> dict[str, Any]:
        """Everything that is stored of a block but content and schema, as it is stored."""
        stored = self.stored(block)
        with self._doc.transaction():
            keys = stored.keys()
            return {key: stored[key] for key in keys if key not in (CONTENT, SCHEMA)}

    def schema(self, block: str) -> Schema:
        """Return the schema of a block's content; a text if what is stored is no schema.

        Raises KeyError if there is no such block.
        """
        schema = self._schemas.get(block)
        if schema is None:
            schema = decode_schema(self.stored(block).get(SCHEMA)) or TEXT
            self._schemas[block] = schema
        return schema

    def container(self, block: str, path: str | None = None) -> Container | None:
        """Return the container of a block's content, or of a part of it; None if there is none.

        Only for the modules of this package: whatever is written there is to be written inside a
        `transaction`, and texts through `splice` and `append`.

        Raises KeyError if there is no such block.
        """
        return find_container(self.stored(block), names_of(path))

    def stored(self, block: str) -> Map[Any]:
        """The map of a block."""
        if block not in self.order:
            raise KeyError(block)
        stored: Map[Any] = self._blocks[block]
        return stored

    def content(self, block: str, section: str | None) -> Text | None:
        """The shared text in a place; None if there is none."""
        content = self.container(block, section)
        return content if isinstance(content, Text) else None

    def written(self, block: str, section: str | None) -> Text | None:
        """The same, kept at hand for who writes there again.

        A text stays where it is for as long as no map around it changes.
        """
        place = _place(block, section)
        content = self._written.get(place)
        if content is None:
            content = self.content(block, section)
            if content is not None:
                if len(self._written) >= _WRITTEN_KEPT:
                    self._written.clear()
                self._written[place] = content
        return content

    def length(self, block: str, section: str | None = None) -> int:
        """Code points of the text, or, where nobody has read it yet, its bytes: never less."""
        mirror = self._mirrors.get(_place(block, section))
        if mirror is not None:
            return mirror.length
        content = self.content(block, section)
        return len(content) if content is not None else 0

    def mirror(self, block: str, section: str | None) -> TextMirror:
        """The text in a place as a string; empty if there is none."""
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        if mirror is None:
            content = self.content(block, section)
            if content is None:
                return TextMirror("")
            mirror = self._mirrors[place] = TextMirror(str(content))
        return mirror

    def peek(self, block: str, section: str | None) -> str:
        """The same as a plain string, of which nothing is kept."""
        mirror = self._mirrors.get(_place(block, section))
        if mirror is not None:
            return mirror.text
        content = self.content(block, section)
        return str(content) if content is not None else ""

    def read_mirror(self, block: str, section: str | None) -> TextMirror | None:
        """The same, if somebody has read that text."""
        return self._mirrors.get(_place(block, section))

    # The ends of texts

    def tail_is_live(self, block: str, section: str | None) -> bool:
        """Return whether it is known that no removed character follows the last one of a text."""
        return _place(block, section) in self._clear_ends

    def restore_live_tail(self, block: str, section: str | None) -> None:
        """From now on that is so."""
        self._clear_ends.add(_place(block, section))

    def has_end_of(self, block: str, section: str | None) -> None:
        """The last characters of a text have been removed."""
        self._clear_ends.discard(_place(block, section))

    # Following

    def record_splice(self, block: str, section: str | None) -> list[TextSplice]:
        """Return the list of this document's own splices of a text in the current transaction."""
        return self._spliced.setdefault(_place(block, section), [])

    def end_transaction(self) -> None:
        """A transaction has ended."""
        self._spliced.clear()

    def own_change(self, path: Sequence[object]) -> TextChange | None:
        """Return this document's own change of the text at a path; None if there is none."""
        if len(path) < 2 or path[1] != CONTENT:
            return None
        block, section = str(path[0]), path_of(tuple(map(str, path[2:])))
        own = self._spliced.get(_place(block, section))
        return TextChange(block, tuple(own), section) if own is not None else None

    def apply_events(self, events: list[Any], origin: object, *, removes: bool) -> DocumentChange:
        """Apply a transaction's CRDT events; return its change.

        Args:
            removes: whether it may have removed text.
        """
        added: list[str] = []
        headers: dict[str, frozenset[str]] = {}
        texts: list[TextChange] = []
        contents: dict[ContentChange, None] = {}
        reordered = False
        for event in events:
            path, in_map = event.path, isinstance(event, MapEvent)
            if in_map:
                self._written.clear()
            if not path:
                added += self._blocks_changed(event)
            elif len(path) == 1 and in_map:
                block, fields = str(path[0]), frozenset(event.keys)
                headers[block] = fields
                self._headers.pop(block, None)
                self._schemas.pop(block, None)
                if "order" in fields and self.order.move(block, self._order_key(block)):
                    reordered = True
            elif len(path) >= 2 and path[1] == CONTENT:
                block, names = str(path[0]), tuple(map(str, path[2:]))
                if isinstance(event, TextEvent):
                    texts.append(self._text_changed(block, path_of(names), event, removes=removes))
                else:
                    schema = self.schema(block)
                    contents.update(dict.fromkeys(content_changes(schema, block, names, event)))
        return DocumentChange(
            origin,
            tuple(added),
            tuple(HeaderChange(block, fields) for block, fields in headers.items()),
            tuple(texts),
            reordered,
            tuple(contents),
        )

    def _blocks_changed(self, event: Any) -> list[str]:
        """Blocks that came under the root; values that are no maps are no blocks."""
        added = [block for block in event.keys if self._is_block(block)]
        for block in added:
            self._headers.pop(block, None)
            self._schemas.pop(block, None)
        self.order.add([(block, self._order_key(block)) for block in added])
        return added

    def _is_block(self, key: str) -> bool:
        return isinstance(self._blocks.get(key), Map)

    def _order_key(self, block: str) -> str:
        order = self._blocks[block].get("order")
        return order if isinstance(order, str) else ""

    def _text_changed(
        self, block: str, section: str | None, event: Any, *, removes: bool
    ) -> TextChange:
        place = _place(block, section)
        own = self._spliced.get(place)
        if own is not None:
            return TextChange(block, tuple(own), section)
        mirror = self._mirrors.get(place)
        watches_end = removes and place in self._clear_ends
        if watches_end and takes_the_end(event.delta, len(event.target)):
            self._clear_ends.discard(place)
        splices = mirror.apply(event.delta) if mirror is not None else ()
        return TextChange(block, splices, section)


def _place(block: str, section: str | None) -> str:
    """One key for each text; no block id has a slash."""
    return block if section is None else f"{block}/{section}"
