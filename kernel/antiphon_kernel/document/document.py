"""One context's document: blocks in a CRDT, read and written in code points.

The layout is a public contract: root map ``meta`` (format, context, epoch, label), root map
``blocks`` (block id to a map with the header fields, ``content`` and, unless that is a text,
``schema``), and root map ``members`` (principal id to a JSON string: who has written or been here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pycrdt import Doc, Map, Text

from antiphon_kernel.document.block_cache import BlockCache
from antiphon_kernel.document.block_order import BlockOrder
from antiphon_kernel.document.block_text import (
    append_text,
    splice_text,
    splice_text_all,
)
from antiphon_kernel.document.changes import (
    REMOTE,
    DocumentChange,
    Transaction,
)
from antiphon_kernel.document.containers import (
    Container,
    fill_lists,
    new_container,
)
from antiphon_kernel.document.genesis import genesis_client, genesis_update
from antiphon_kernel.document.header import (
    CONTENT,
    SCHEMA,
    stored_header,
    stored_value,
    write_keys,
)
from antiphon_kernel.document.observers import observe_deep
from antiphon_kernel.document.schema import (
    TEXT,
    Schema,
    each_part,
    encode_schema,
    is_text,
    path_of,
)
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader, Member, TextSplice
from antiphon_kernel.yjs.update import ContentKind, Struct
from antiphon_kernel.yjs.update_writer import encode_update


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
        self._read = BlockCache(self._doc, self._blocks)
        self._watchers: list[Callable[[DocumentChange], None]] = []
        self._update_watchers: list[Callable[[bytes, object], None]] = []
        self._current: Transaction | None = None
        self._followed = observe_deep(self._blocks, self._wrote, self._observe_blocks)
        self._told = self._doc.observe(self._observe_transaction)
        self._closed = False

    @classmethod
    def create(cls, client_id: int, *, context: ContextId, epoch: str, label: str) -> Document:
        """A new, empty document."""
        document = cls(client_id)
        document.apply_update(genesis_update(context, epoch, label))
        return document

    @classmethod
    def continued(cls, client_id: int, clock: int) -> Document:
        """An empty document that goes on at a clock of its CRDT client id.

        What is written into it fits behind the first items of this client elsewhere.
        """
        document = cls(client_id)
        if clock:
            passed = Struct(client_id, 0, clock, ContentKind.GC)
            document.apply_update(encode_update([passed], ()))
        return document

    @classmethod
    def loaded(cls, stored: Doc[Any], headers: Iterable[BlockHeader]) -> Document:
        """A document that has been read from disk already (see `DocumentLoader`).

        Args:
            headers: those that are known; others are read when asked for.
        """
        document = cls(int(stored.client_id), stored)
        document._read.preload(headers)
        return document

    def close(self) -> None:
        """Let go of the CRDT; nothing is written or watched any more."""
        if not self._closed:
            self._followed.drop()
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
        """Id of the document's context; None until something has been synced."""
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
        return self._read.order.ids()

    @property
    def order(self) -> BlockOrder:
        """The same with places; only to be read."""
        return self._read.order

    def __len__(self) -> int:
        return len(self._read.order)

    def __contains__(self, block: object) -> bool:
        return block in self._read.order

    def header(self, block: str) -> BlockHeader:
        """Raises KeyError if there is no such block."""
        return self._read.header(block)

    def stored_fields(self, block: str) -> dict[str, Any]:
        """Return the header fields of a block as they are stored, whatever their values are.

        Raises KeyError if there is no such block.
        """
        return self._read.fields(block)

    def schema(self, block: str) -> Schema:
        """Return the schema of a block's content; a text if what is stored is no schema.

        Raises KeyError if there is no such block.
        """
        return self._read.schema(block)

    def is_draft(self, block: str) -> bool:
        """Return whether a block is a person's message that has not been sent.

        A block with another schema than a text's is none: nobody sends it.

        Raises KeyError if there is no such block.
        """
        return self.header(block).is_draft and self.schema(block) == TEXT

    def container(self, block: str, path: str | None = None) -> Container | None:
        """Return the container of a block's content, or of a part of it; None if there is none.

        Only for the modules of this package: whatever is written there is to be written inside a
        `transaction`, and texts through `splice` and `append`.

        Raises KeyError if there is no such block.
        """
        return self._read.container(block, path)

    def text(self, block: str, section: str | None = None) -> str:
        """A text; empty if there is none in that place.

        Raises KeyError if there is no such block.
        """
        return self._read.mirror(block, section).text

    def peek_text(self, block: str, section: str | None = None) -> str:
        """The same; if nobody has read it yet, it is not kept in memory either."""
        return self._read.peek(block, section)

    def length(self, block: str, section: str | None = None) -> int:
        """Code points of the text, or, where nobody has read it yet, its bytes: never less."""
        return self._read.length(block, section)

    def member(self, principal: str) -> Member | None:
        """Return the member record of a principal; None if it has never been here."""
        stored = self._members.get(principal)
        return Member.parse(principal, stored) if isinstance(stored, str) else None

    def members(self) -> list[Member]:
        """Everybody who has written or been here, by colour slot."""
        principals = self._members.keys()
        known = map(self.member, principals)
        return sorted((one for one in known if one is not None), key=lambda one: one.colour)

    # Writing

    def transaction(self, origin: object) -> AbstractContextManager[Transaction]:
        """All writes inside are one update and one change. Must not be held over an await.

        There is no roll-back: validate before the first write.

        Args:
            origin: whatever tells watchers whose change this is.
        """
        if self._current is not None:
            return nullcontext(self._current)
        return self._begun(origin)

    @contextmanager
    def _begun(self, origin: object) -> Iterator[Transaction]:
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
        if header.id in self._read.order:
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
            self._read.order.add([(header.id, header.order)])
        for names, part in each_part(schema):
            if is_text(part):
                self._read.restore_live_tail(header.id, path_of(names))

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
        mirror = self._read.mirror(block, section)
        if deleted and offset + deleted == mirror.length:
            self._read.has_end_of(block, section)
        with self.transaction(None):
            splice_text(content, mirror, offset, deleted, inserted)
            own = self._read.record_splice(block, section)
            own.append(TextSplice(offset, deleted, inserted))

    def splice_all(
        self, block: str, splices: Sequence[TextSplice], section: str | None = None
    ) -> None:
        """Sequential splices, none before the one in front of it: quick in long texts.

        Raises the same, before anything is written.
        """
        content, mirror = self._writable(block, section), self._read.mirror(block, section)
        if any(one.deleted for one in splices):
            self._read.has_end_of(block, section)
        with self.transaction(None):
            splice_text_all(content, mirror, splices)
            self._read.record_splice(block, section).extend(splices)

    def tail_is_live(self, block: str, section: str | None = None) -> bool:
        """Return whether no removed character can follow the last character of a text.

        Where one can, `append` could write before it, and restoring it would leave the appended
        text in between.
        """
        return self._read.tail_is_live(block, section)

    def append(self, block: str, text: str, section: str | None = None) -> None:
        """Write behind the last character; cheap at any length.

        Raises:
            KeyError: if there is no such block.
            ValueError: if there is no text in that place, or `text` has half a surrogate pair.
        """
        content = self._writable(block, section)
        mirror = self._read.read_mirror(block, section)
        text.encode()
        with self.transaction(None):
            append_text(content, text)
            own = self._read.record_splice(block, section)
            if mirror is not None:
                own.append(TextSplice(mirror.length, 0, text))
                mirror.append(text)

    def restore_live_tail(self, block: str, section: str | None = None) -> None:
        """Know that the last item of a text, removed ones included, is its last character."""
        self._read.restore_live_tail(block, section)

    def _writable(self, block: str, section: str | None) -> Text:
        content = self._read.written(block, section)
        if content is None:
            raise ValueError(f"there is no text in {section or 'the content'} of block {block}")
        return content

    def set_fields(self, block: str, **fields: object) -> None:
        """Write header fields; None removes one."""
        stored = self._read.stored(block)
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
                current.only_adds = is_text
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
        """Return the state vector, as Yjs encodes it."""
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
        self._read.end_transaction()
        if current.update is None:
            return
        for on_update in tuple(self._update_watchers):
            on_update(current.update, current.origin)
        for on_change in tuple(self._watchers) if current.change.touched else ():
            on_change(current.change)

    def _observe_transaction(self, event: Any) -> None:
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        current.record(event)

    def _wrote(self, path: Sequence[object]) -> bool:
        """Whether the one text that has changed is what this document itself has written."""
        current, change = self._current, self._read.own_change(path)
        if current is None or change is None:
            return False
        current.change = DocumentChange(current.origin, texts=(change,))
        return True

    def _observe_blocks(self, events: list[Any]) -> None:
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        current.change = self._read.apply_events(
            events, current.origin, removes=not current.only_adds
        )
