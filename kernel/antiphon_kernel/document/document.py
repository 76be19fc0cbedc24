"""One context's document: blocks in a CRDT, read and written in code points.

The layout is a public contract: root map ``meta`` (format, context, epoch, label), root map
``blocks`` (block id to a map with the header fields, ``content`` and, unless that is a text,
``schema``), and root map ``members`` (principal id to a JSON string: who has written or been here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pycrdt import Doc, Map, MapEvent, Text, TextEvent

from antiphon_kernel.document.block_order import BlockOrder
from antiphon_kernel.document.block_text import (
    TextMirror,
    append_text,
    splice_text,
    splice_text_all,
)
from antiphon_kernel.document.changes import (
    REMOTE,
    ContentChange,
    DocumentChange,
    HeaderChange,
    TextChange,
    Transaction,
    content_changes,
)
from antiphon_kernel.document.containers import (
    Container,
    fill_lists,
    find_container,
    new_container,
)
from antiphon_kernel.document.genesis import genesis_client, genesis_update
from antiphon_kernel.document.header import (
    CONTENT,
    SCHEMA,
    read_header,
    stored_header,
    stored_value,
    write_keys,
)
from antiphon_kernel.document.schema import (
    TEXT,
    Schema,
    decode_schema,
    encode_schema,
    names_of,
    path_of,
)
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader, Member, TextSplice


class Document:
    """Blocks, in order, each with a header and a content; watched by transaction.

    `section` is the path of a text inside a block's content: of a section, or of a text field of a
    map (see `schema`). None is a content that is one text.
    """

    def __init__(self, client_id: int, stored: Doc[Any] | None = None) -> None:
        """A document for this CRDT client id; `loaded` makes one of a `stored` one."""
        self._doc = stored if stored is not None else Doc(client_id=client_id, skip_gc=True)
        self._meta: Map[Any] = self._doc.get("meta", type=Map)
        self._blocks: Map[Any] = self._doc.get("blocks", type=Map)
        self._members: Map[Any] = self._doc.get("members", type=Map)
        self._order = BlockOrder()
        self._headers: dict[str, BlockHeader] = {}
        self._schemas: dict[str, Schema] = {}
        self._mirrors: dict[str, TextMirror] = {}
        self._watchers: list[Callable[[DocumentChange], None]] = []
        self._update_watchers: list[Callable[[bytes, object], None]] = []
        self._current: Transaction | None = None
        self._spliced: dict[str, list[TextSplice]] = {}
        self._followed = self._blocks.observe_deep(self._observe_blocks)
        self._told = self._doc.observe(self._observe_transaction)
        self._closed = False

    @classmethod
    def found(cls, client_id: int, *, context: ContextId, epoch: str, label: str) -> Document:
        """A new, empty document."""
        document = cls(client_id)
        document.apply_update(genesis_update(context, epoch, label))
        return document

    @classmethod
    def loaded(cls, stored: Doc[Any], headers: Iterable[BlockHeader]) -> Document:
        """A document that has been read from disk already (see `DocumentLoader`).

        Args:
            headers: those that are known; others are read when asked for.
        """
        document = cls(int(stored.client_id), stored)
        document._headers = known = {header.id: header for header in headers}
        with stored.transaction():
            others = [key for key in document._blocks.keys() if key not in known]  # noqa: SIM118
            blocks = [key for key in others if document._is_block(key)]
            order = [(key, document._order_key(key)) for key in blocks]
        document._order.add(order + [(one.id, one.order) for one in known.values()])
        return document

    def close(self) -> None:
        """Let go of the CRDT; nothing is written or watched any more."""
        if not self._closed:
            self._blocks.unobserve(self._followed)
            self._doc.unobserve(self._told)
        self._closed = True
        self._watchers.clear()
        self._update_watchers.clear()

    # What the document is

    @property
    def client_id(self) -> int:
        return int(self._doc.client_id)

    @property
    def context(self) -> ContextId | None:
        """Whose document this is; None until something has been synced."""
        value = self._meta_string("context")
        return ContextId(value) if value is not None else None

    @property
    def epoch(self) -> str | None:
        return self._meta_string("epoch")

    @property
    def genesis_client(self) -> int | None:
        """The client id that only replicas of this epoch know; None until synced."""
        return genesis_client(self.epoch) if self.epoch is not None else None

    @property
    def label(self) -> str | None:
        return self._meta_string("label")

    @property
    def archived(self) -> str | None:
        """Since when the context is out of the way; None if it is not."""
        return self._meta_string("archived")

    def _meta_string(self, key: str) -> str | None:
        value = self._meta.get(key)
        return value if isinstance(value, str) else None

    # Reading

    def block_ids(self) -> Sequence[str]:
        """Every block in document order: by order key, then by id."""
        return self._order.ids()

    @property
    def order(self) -> BlockOrder:
        """The same with places; only to be read."""
        return self._order

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, block: object) -> bool:
        return block in self._order

    def header(self, block: str) -> BlockHeader:
        """Raises KeyError if there is no such block."""
        header = self._headers.get(block)
        if header is None:
            stored = self._block_map(block)
            with self._doc.transaction():
                keys = stored.keys()
                fields = {key: stored[key] for key in keys if key not in (CONTENT, SCHEMA)}
            header = self._headers[block] = read_header(block, fields)
        return header

    def schema(self, block: str) -> Schema:
        """What the content of a block looks like; a text if what is stored is no schema.

        Raises KeyError if there is no such block.
        """
        schema = self._schemas.get(block)
        if schema is None:
            schema = decode_schema(self._block_map(block).get(SCHEMA)) or TEXT
            self._schemas[block] = schema
        return schema

    def container(self, block: str, path: str | None = None) -> Container | None:
        """What holds a block's content, or a part of it; None if there is nothing there.

        Only for the modules of this package: whatever is written there is to be written inside a
        `transaction`, and texts through `splice` and `append`.

        Raises KeyError if there is no such block.
        """
        return find_container(self._block_map(block), names_of(path))

    def text(self, block: str, section: str | None = None) -> str:
        """A text; empty if there is none in that place.

        Raises KeyError if there is no such block.
        """
        return self._mirror(block, section).text

    def member(self, principal: str) -> Member | None:
        """What the document knows of a principal; None if it has never been here."""
        stored = self._members.get(principal)
        return Member.parse(principal, stored) if isinstance(stored, str) else None

    def members(self) -> list[Member]:
        """Everybody who has written or been here, by colour slot."""
        principals = self._members.keys()
        known = map(self.member, principals)
        return sorted((one for one in known if one is not None), key=lambda one: one.colour)

    def length(self, block: str, section: str | None = None) -> int:
        """Code points of the text, or, where nobody has read it yet, its bytes: never less."""
        mirror = self._mirrors.get(_place(block, section))
        if mirror is not None:
            return mirror.length
        content = self._content(block, section)
        return len(content) if content is not None else 0

    def _block_map(self, block: str) -> Map[Any]:
        if block not in self._order:
            raise KeyError(block)
        stored: Map[Any] = self._blocks[block]
        return stored

    def _content(self, block: str, section: str | None) -> Text | None:
        content = self.container(block, section)
        return content if isinstance(content, Text) else None

    def _mirror(self, block: str, section: str | None) -> TextMirror:
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        if mirror is None:
            content = self._content(block, section)
            if content is None:
                return TextMirror("")
            mirror = self._mirrors[place] = TextMirror(str(content))
        return mirror

    # Writing

    @contextmanager
    def transaction(self, origin: object) -> Iterator[Transaction]:
        """All writes inside are one update and one change. Must not be held over an await.

        There is no roll-back: validate before the first write.

        Args:
            origin: whatever tells watchers whose change this is.
        """
        if self._current is not None:
            yield self._current
            return
        current = self._current = Transaction(origin)
        try:
            with self._doc.transaction():
                yield current
        finally:
            self._current = None
            self._publish(current)

    def create_block(
        self,
        header: BlockHeader,
        content: str = "",
        *,
        schema: Schema = TEXT,
        container: Container | None = None,
    ) -> None:
        """Add a block under `header.id`.

        Args:
            content: its text; only of a block that is one text.
            schema: what its content looks like; it starts with the defaults.
            container: what its content is instead, of the form that the schema says.

        Raises:
            ValueError: if the id is taken or a field cannot be stored.
        """
        if header.id in self._order:
            raise ValueError(f"there is already a block {header.id}")
        if content and schema != TEXT:
            raise ValueError(f"the content of block {header.id} is not a text")
        stored = stored_header(header)
        if schema != TEXT:
            stored[SCHEMA] = encode_schema(schema)
        content.encode()
        with self.transaction(None):
            held = new_container(schema, self.client_id) if container is None else container
            self._blocks[header.id] = Map({**stored, CONTENT: held})
            if content and isinstance(held, Text):
                append_text(held, content)
            if container is None:
                fill_lists(held, schema)
            self._order.add([(header.id, header.order)])

    def splice(
        self, block: str, offset: int, deleted: int, inserted: str, section: str | None = None
    ) -> None:
        """Replace `deleted` code points at code point `offset` by `inserted`.

        Raises:
            KeyError: if there is no such block.
            ValueError: if there is no text in that place, the range is outside of it or `inserted`
                has half a surrogate pair.
        """
        content = self._writable(block, section)
        mirror = self._mirror(block, section)
        with self.transaction(None):
            splice_text(content, mirror, offset, deleted, inserted)
            own = self._spliced.setdefault(_place(block, section), [])
            own.append(TextSplice(offset, deleted, inserted))

    def splice_all(
        self, block: str, splices: Sequence[TextSplice], section: str | None = None
    ) -> None:
        """Sequential splices, none before the one in front of it: quick in long texts.

        Raises the same, before anything is written.
        """
        content, mirror = self._writable(block, section), self._mirror(block, section)
        with self.transaction(None):
            splice_text_all(content, mirror, splices)
            self._spliced.setdefault(_place(block, section), []).extend(splices)

    def append(self, block: str, text: str, section: str | None = None) -> None:
        """Write at the end; cheap at any length.

        Raises:
            KeyError: if there is no such block.
            ValueError: if there is no text in that place, or `text` has half a surrogate pair.
        """
        content = self._writable(block, section)
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        text.encode()
        with self.transaction(None):
            append_text(content, text)
            own = self._spliced.setdefault(place, [])
            if mirror is not None:
                own.append(TextSplice(mirror.length, 0, text))
                mirror.append(text)

    def _writable(self, block: str, section: str | None) -> Text:
        content = self._content(block, section)
        if content is None:
            raise ValueError(f"the content of block {_place(block, section)} is not a text")
        return content

    def set_fields(self, block: str, **fields: object) -> None:
        """Write header fields; None removes one."""
        stored = self._block_map(block)
        values = {name: stored_value(name, value) for name, value in fields.items()}
        with self.transaction(None):
            write_keys(stored, values)

    def set_meta(self, **fields: str | None) -> None:
        """Write what the document says of its context; None removes a key."""
        with self.transaction(None):
            write_keys(self._meta, fields)

    def set_member(self, member: Member) -> None:
        """Introduce a principal to everybody who reads this document."""
        with self.transaction(None):
            self._members[member.principal] = member.as_json()

    def apply_update(
        self, update: bytes, origin: object = REMOTE, *, is_text: bool = False
    ) -> Transaction:
        """Merge what another replica wrote.

        Args:
            is_text: whether it is known to insert new text only; the CRDT is not asked then,
                whose answer costs more, the longer the text around it is.

        Raises:
            ValueError: if the bytes are not an update (the document may then hold part of it:
                check what comes from outside before it gets here).
        """
        if self._current is not None:
            raise RuntimeError("an update cannot be applied inside a transaction")
        if is_text:
            self._doc.unobserve(self._told)
        try:
            with self.transaction(origin) as current:
                try:
                    self._doc.apply_update(update)
                except (ValueError, RuntimeError) as error:
                    raise ValueError(f"not a document update: {error}") from error
                current.update = update if is_text else None
        finally:
            if is_text:
                self._told = self._doc.observe(self._observe_transaction)
        return current

    # Syncing

    def state_vector(self) -> bytes:
        """What this document has seen, as Yjs encodes it."""
        return self._doc.get_state()

    def update_since(self, state_vector: bytes | None = None) -> bytes:
        """Everything that a replica with this state vector has not seen; None for all."""
        return self._doc.get_update(state_vector)

    # Watching

    def watch(self, listener: Callable[[DocumentChange], None]) -> Callable[[], None]:
        """Call `listener` after each transaction that changed a block; returns the way to stop."""
        self._watchers.append(listener)
        return lambda: self._watchers.remove(listener)

    def watch_updates(self, listener: Callable[[bytes, object], None]) -> Callable[[], None]:
        """Call `listener` with the update and origin of each transaction."""
        self._update_watchers.append(listener)
        return lambda: self._update_watchers.remove(listener)

    def _publish(self, current: Transaction) -> None:
        self._spliced.clear()
        if current.update is None:
            return
        for on_update in tuple(self._update_watchers):
            on_update(current.update, current.origin)
        for on_change in tuple(self._watchers) if current.change.touched else ():
            on_change(current.change)

    def _observe_transaction(self, event: Any) -> None:
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        current.note(event)

    def _observe_blocks(self, events: list[Any]) -> None:
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        added: list[str] = []
        headers: dict[str, frozenset[str]] = {}
        texts: list[TextChange] = []
        contents: dict[ContentChange, None] = {}
        reordered = False
        for event in events:
            path, in_map = event.path, isinstance(event, MapEvent)
            if not path:
                added += self._blocks_changed(event)
            elif len(path) == 1 and in_map:
                block, fields = str(path[0]), frozenset(event.keys)
                headers[block] = fields
                self._headers.pop(block, None)
                self._schemas.pop(block, None)
                if "order" in fields and self._order.move(block, self._order_key(block)):
                    reordered = True
            elif len(path) >= 2 and path[1] == CONTENT:
                block, names = str(path[0]), tuple(map(str, path[2:]))
                if isinstance(event, TextEvent):
                    texts.append(self._text_changed(block, path_of(names), event))
                else:
                    schema = self.schema(block)
                    contents.update(dict.fromkeys(content_changes(schema, block, names, event)))
        current.change = DocumentChange(
            current.origin,
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
        self._order.add([(block, self._order_key(block)) for block in added])
        return added

    def _is_block(self, key: str) -> bool:
        return isinstance(self._blocks.get(key), Map)

    def _order_key(self, block: str) -> str:
        order = self._blocks[block].get("order")
        return order if isinstance(order, str) else ""

    def _text_changed(self, block: str, section: str | None, event: Any) -> TextChange:
        place = _place(block, section)
        own = self._spliced.get(place)
        if own is not None:
            return TextChange(block, tuple(own), section)
        mirror = self._mirrors.get(place)
        splices = mirror.apply(event.delta) if mirror is not None else ()
        return TextChange(block, splices, section)


def _place(block: str, section: str | None) -> str:
    """One key for each text; no block id has a slash."""
    return block if section is None else f"{block}/{section}"
