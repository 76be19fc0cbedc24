"""One context's document: blocks in a CRDT, read and written in code points.

The layout is a public contract: root map ``meta`` (format, context, epoch, label), root map
``blocks`` (block id to a map with the header fields, ``content`` and, unless that is a text,
``schema``), and root map ``members`` (principal id to a JSON string: who has written or been here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pycrdt import Doc, Map, Snapshot, Subscription, Text

from antiphon_kernel.document.block_order import BlockOrder
from antiphon_kernel.document.block_text import (
    TextMirror,
    append_text,
    splice_text,
    splice_text_all,
    takes_the_end,
)
from antiphon_kernel.document.changes import (
    REMOTE,
    ContentChange,
    DocumentChange,
    HeaderChange,
    SharedTypeEvent,
    TextChange,
    Transaction,
    observe_deep,
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
    read_fields,
    read_header,
    read_keys,
    read_texts,
    stored_header,
    stored_value,
    write_keys,
)
from antiphon_kernel.document.schema import (
    TEXT,
    Schema,
    TextSchema,
    decode_schema,
    each_part,
    encode_schema,
    is_text,
    known_names,
    names_of,
    path_of,
)
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader, Member, TextSplice
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.id_set import IdIntervals, decode_id_set
from antiphon_kernel.yjs.merge import merge
from antiphon_kernel.yjs.update import ContentKind, Struct, decode_update, split_update
from antiphon_kernel.yjs.update_writer import encode_update

BLOCKS: Final = "blocks"
"""The name of the root map that holds the blocks."""

_TEXTS_AT_HAND: Final = 64

_MANY_BYTES: Final = 2**16
"""Size of an update from which on an empty document takes it in without being told of each event.
"""

_BLOCKS_AT_ONCE: Final = 2_500
"""Blocks whose order is read in one go while a document is being received."""

_PART_BYTES: Final = 2**18
"""Of a part of a long state: reading one takes 60 ms."""

_OPEN: Final = (Status.PENDING, Status.RUNNING)

_NO_STRUCTS: Final = b"\x00"
"""The beginning of an update that inserts nothing: a set of removed items is all that follows."""


class Document:
    """Blocks, in order, each with a header and a content; watched by transaction.

    What has been read is kept, and kept up to date by the events of each transaction. Whatever is
    asked about a block, or does something to it, raises KeyError if it is not there.

    `section` is the path of a text inside a block's content: of a section, or of a text field of a
    map (see `schema`). None is a content that is one text.
    """

    def __init__(self, client_id: int) -> None:
        """An empty document for this CRDT client id."""
        self._doc: Doc[Any] = Doc(client_id=client_id, skip_gc=True)
        self._meta: Map[Any] = self._doc.get("meta", type=Map)
        self._blocks: Map[Any] = self._doc.get(BLOCKS, type=Map)
        self._members: Map[Any] = self._doc.get("members", type=Map)
        self.order = BlockOrder()
        """Every block in document order, with places; only to be read."""
        self._headers: dict[str, BlockHeader] = {}
        self._open: set[str] = set()
        """Blocks that are pending or running."""
        self._schemas: dict[str, Schema] = {}
        self._mirrors: dict[str, TextMirror] = {}
        """Texts that have been read, kept up to date; see `_place` for the key."""
        self._at_hand: dict[str, Text] = {}
        """Texts that were used last. One stays where it is while no map around it changes."""
        self._spliced: dict[str, list[TextSplice]] = {}
        """This document's own splices in the current transaction."""
        self._live_tails: set[str] = set()
        """Texts of which it is known that no removed character follows the last one."""
        self._changes = Signal[DocumentChange]()
        self._updates = Signal[bytes, object]()
        self._current: Transaction | None = None
        self._followed = observe_deep(self._blocks, self._wrote, self._observe_blocks)
        self._told: Subscription | None = None
        self._known_meta: dict[str, str] = {}
        self._omitted_meta: Mapping[str, str] = {}
        self._omitted_members: Mapping[str, str] = {}
        self._known_members: dict[str, Member] = {}
        """Members that have been read; like `_known_meta`, until somebody writes there."""
        self._observed = [
            (self._meta, self._meta.observe(_clearing(self._known_meta))),
            (self._members, self._members.observe(_clearing(self._known_members))),
        ]
        self._closed = False
        self.has_parts = False
        """Parts of the state have come of which nobody has been told."""

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

    def _ignore(self) -> None:
        if self._told is not None:
            self._doc.unobserve(self._told)
            self._told = None

    def close(self) -> None:
        """Let go of the CRDT; nothing is written or watched any more."""
        if not self._closed:
            self._followed.drop()
            self._ignore()
            for shared, subscription in self._observed:
                shared.unobserve(subscription)
        self._closed = True
        self._changes.clear()
        self._updates.clear()

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

    @property
    def default_model(self) -> str | None:
        """Name of the model that answers messages which name none; the kernel's own if None."""
        return self._meta_string("model")

    def _meta_string(self, key: str) -> str | None:
        value = self._known_meta.get(key)
        if value is None:
            stored = self._meta.get(key, self._omitted_meta.get(key))
            if not isinstance(stored, str):
                return None
            value = self._known_meta[key] = stored
        return value

    # Reading

    def block_ids(self) -> Sequence[str]:
        """Every block in document order: by order key, then by id."""
        return self.order.ids()

    def __len__(self) -> int:
        return len(self.order)

    def __contains__(self, block: object) -> bool:
        return block in self.order

    def header(self, block: str) -> BlockHeader:
        """Return the header of a block."""
        header = self._headers.get(block)
        if header is None:
            (header,) = self.headers((block,))
        return header

    def headers(self, blocks: Sequence[str], *, keep: bool = True) -> list[BlockHeader]:
        """Return the headers of several blocks, in less time.

        Args:
            keep: keep what is read: a header with its strings takes 600 bytes.
        """
        known = self._headers
        unread = [block for block in blocks if block not in known]
        read = known if keep else dict[str, BlockHeader]()
        for block, stored in zip(unread, read_keys(self._blocks, unread), strict=True):
            read[block] = read_header(block, stored)
        return [known.get(block) or read[block] for block in blocks]

    def stored_fields(self, block: str) -> dict[str, Any]:
        """Return the header fields of a block as they are stored, whatever their values are."""
        (stored,) = read_keys(self._blocks, (block,))
        return stored

    def open_blocks(self, blocks: Iterable[str] | None = None) -> list[str]:
        """Return those of some blocks, or of all, that are pending or running, in document order.

        Their headers are not kept in memory: in a long document they are few.
        """
        found = self._open if blocks is None else self._open.intersection(blocks)
        return sorted(found, key=self.order.key)

    def blocks_with_metadata(self, blocks: Sequence[str], text: str) -> list[str]:
        """Return those of some blocks whose metadata, as stored, have this text in them."""
        self._check_known(blocks)
        fields = read_fields(self._blocks, blocks, ("metadata",))
        return [
            block
            for block, found in zip(blocks, fields, strict=True)
            if found is not None and isinstance(found[0], str) and text in found[0]
        ]

    def _check_known(self, blocks: Sequence[str]) -> None:
        for block in blocks:
            if block not in self.order:
                raise KeyError(block)

    def schema(self, block: str) -> Schema:
        """Return the schema of a block's content; a text if what is stored is no schema."""
        schema = self._schemas.get(block)
        if schema is None:
            schema = decode_schema(self._stored(block).get(SCHEMA)) or TEXT
            self._schemas[block] = schema
        return schema

    def is_draft(self, block: str) -> bool:
        """Return whether a block is a person's message that has not been sent.

        A block with another schema than a text's is none: nobody sends it.
        """
        return self.header(block).is_draft and isinstance(self.schema(block), TextSchema)

    def reply_depth(self, block: str, limit: int) -> int:
        """The number of blocks from this one up through its parents; no more than `limit`.

        Parents that run in a circle, or that are not there, do no harm.
        """
        length, at = 0, self.header(block).id
        while length < limit:
            length += 1
            parent = self.header(at).parent
            if parent is None or parent not in self:
                break
            at = parent
        return length

    def container(self, block: str, path: str | None = None) -> Container | None:
        """Return the container of a block's content, or of a part of it; None if there is none.

        Only for the modules of this package: whatever is written there is to be written inside a
        `transaction`, and texts through `splice` and `append`.
        """
        return find_container(self._stored(block), names_of(path))

    def text(self, block: str, section: str | None = None) -> str:
        """A text; empty if there is none in that place."""
        return self._mirror(block, section).text

    def peek_text(self, block: str, section: str | None = None) -> str:
        """The same; if nobody has read it yet, it is not kept in memory either."""
        mirror = self._mirrors.get(_place(block, section))
        if mirror is not None:
            return mirror.text
        content = self._content(block, section)
        return str(content) if content is not None else ""

    def plain_texts(self, blocks: Sequence[str]) -> list[str | None]:
        """The texts of blocks whose content is one text, not kept in memory; None of others."""
        self._check_known(blocks)
        texts = read_texts(self._blocks, blocks)
        for at, block in enumerate(blocks):
            if texts[at] is None:  # it states a schema, or lacks a text
                content = self._stored(block).get(CONTENT)
                if isinstance(content, Text):
                    texts[at] = str(content)
                elif self.schema(block) == TEXT:
                    texts[at] = ""
        return texts

    def length(self, block: str, section: str | None = None) -> int:
        """Code points of the text, or, where nobody has read it yet, its bytes: never less."""
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        if mirror is not None:
            return mirror.length
        content = self._content(block, section)
        return len(content) if content is not None else 0

    def _stored(self, block: str) -> Map[Any]:
        if block not in self.order:
            raise KeyError(block)
        stored: Map[Any] = self._blocks[block]
        return stored

    def _content(self, block: str, section: str | None) -> Text | None:
        place = _place(block, section)
        content = self._at_hand.get(place)
        if content is None:
            found = self.container(block, section)
            if not isinstance(found, Text):
                return None
            if len(self._at_hand) >= _TEXTS_AT_HAND:
                self._at_hand.clear()
            content = self._at_hand[place] = found
        return content

    def _mirror(self, block: str, section: str | None) -> TextMirror:
        """The text in a place as a string; empty if there is none."""
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        if mirror is None:
            content = self._content(block, section)
            if content is None:
                return TextMirror("")
            mirror = self._mirrors[place] = TextMirror(str(content))
        return mirror

    def member(self, principal: str) -> Member | None:
        """Return the member record of a principal; None if it has never been here."""
        member = self._known_members.get(principal)
        if member is None:
            stored = self._members.get(principal, self._omitted_members.get(principal))
            member = Member.parse(principal, stored) if isinstance(stored, str) else None
            if member is not None:
                self._known_members[principal] = member
        return member

    def members(self) -> list[Member]:
        """Everybody who has written or been here, by colour slot."""
        principals = self._omitted_members.keys() | set(self._members.keys())
        known = map(self.member, principals)
        return sorted((one for one in known if one is not None), key=lambda one: one.colour)

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
        if self._told is None:
            self._told = self._doc.observe(self._observe_transaction)
        current = Transaction(origin)
        try:
            with self._doc.transaction():
                self._current = current
                yield current
        finally:
            self._end(current)

    def _end(self, current: Transaction) -> None:
        self._current = None
        self._spliced.clear()
        if current.update is not None:
            self._updates.notify(current.update, current.origin)
            if current.change.touched:
                self._changes.notify(current.change)

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
        if header.id in self.order:
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
            self.order.add([(header.id, header.order)])
        for names, part in each_part(schema):
            if is_text(part):
                self.restore_live_tail(header.id, path_of(names))

    def splice(
        self, block: str, offset: int, deleted: int, inserted: str, section: str | None = None
    ) -> None:
        """Replace `deleted` code points at code point `offset` by `inserted`.

        Raises:
            ValueError: if there is no text in that place, the range is outside of it or `inserted`
                has half a surrogate pair.
        """
        content, place = self._writable(block, section), _place(block, section)
        mirror = self._mirror(block, section)
        if deleted and offset + deleted == mirror.length:
            self._live_tails.discard(place)
        with self.transaction(None):
            splice_text(content, mirror, offset, deleted, inserted)
            self._spliced.setdefault(place, []).append(TextSplice(offset, deleted, inserted))

    def splice_all(
        self, block: str, splices: Sequence[TextSplice], section: str | None = None
    ) -> None:
        """Sequential splices, none before the one in front of it: quick in long texts.

        Raises the same, before anything is written.
        """
        content, place = self._writable(block, section), _place(block, section)
        mirror = self._mirror(block, section)
        if any(one.deleted for one in splices):
            self._live_tails.discard(place)
        with self.transaction(None):
            splice_text_all(content, mirror, splices)
            self._spliced.setdefault(place, []).extend(splices)

    def tail_is_live(self, block: str, section: str | None = None) -> bool:
        """Return whether no removed character can follow the last character of a text.

        Where one can, `append` could write before it, and restoring it would leave the appended
        text in between.
        """
        return _place(block, section) in self._live_tails

    def append(self, block: str, text: str, section: str | None = None) -> None:
        """Write behind the last character; cheap at any length.

        Raises:
            ValueError: if there is no text in that place, or `text` has half a surrogate pair.
        """
        content = self._writable(block, section)
        text.encode()
        place = _place(block, section)
        mirror = self._mirrors.get(place)
        with self.transaction(None):
            own = self._spliced.setdefault(place, [])
            if mirror is not None:
                own.append(TextSplice(mirror.length, 0, text))
                mirror.append(text)
            append_text(content, text)

    def restore_live_tail(self, block: str, section: str | None = None) -> None:
        """Know that the last item of a text, removed ones included, is its last character."""
        self._live_tails.add(_place(block, section))

    def _writable(self, block: str, section: str | None) -> Text:
        content = self._content(block, section)
        if content is None:
            raise ValueError(f"there is no text in {section or 'the content'} of block {block}")
        return content

    def set_fields(self, block: str, **fields: object) -> None:
        """Write header fields; None removes one."""
        stored = self._stored(block)
        values = {name: stored_value(name, value) for name, value in fields.items()}
        with self.transaction(None):
            write_keys(stored, values)

    def set_meta(self, **fields: str | None) -> None:
        """Write what the document says of its context; None removes a key."""
        with self.transaction(None):
            write_keys(self._meta, fields)
            self._known_meta.clear()

    def set_member(self, member: Member) -> None:
        """Introduce a principal to everybody who reads this document."""
        with self.transaction(None):
            self._members[member.principal] = member.as_json()
            self._known_members.pop(member.principal, None)

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
        if origin is REMOTE and len(update) >= _MANY_BYTES and not len(self.order):
            current = self.apply_part(update)
            for _ in self.finish_parts():
                pass
            current.change = DocumentChange(REMOTE, tuple(self.block_ids()))
            return current
        if not is_text:
            with self.transaction(origin) as current:
                _take_in(self._doc, update)
            return current
        # The observer of transactions is dropped until one comes that needs it: mostly another such
        # update is the next.
        self._ignore()
        current = self._current = Transaction(origin, only_adds=True)
        try:
            _take_in(self._doc, update)
            current.update = update
        finally:
            self._end(current)
        return current

    @property
    def is_partial(self) -> bool:
        """Whether the state that this document begins with is not here, or only parts of it."""
        return self.has_parts or self.epoch is None

    def omit(self, meta: Mapping[str, str], members: Mapping[str, str]) -> None:
        """Take over these `stated_values`, which are left out of the state."""
        self._omitted_meta, self._omitted_members = dict(meta), dict(members)

    def stated_values(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the maps ``meta`` and ``members``, with what is left out of the state."""
        meta = {**self._omitted_meta, **_strings_in(self._meta)}
        return meta, {**self._omitted_members, **_strings_in(self._members)}

    def apply_part(self, update: bytes) -> Transaction:
        """Merge a part of the state that this document begins with; `finish_parts` tells of it.

        Much quicker than `apply_update`: the CRDT would make an object of each block, and write the
        whole update once more. Of several updates (`FAN_IN` at most take the least time) what
        `merge` makes of them is one part.

        Raises:
            ValueError: as `apply_update`.
        """
        self.has_parts = True
        self._followed.drop()
        self._ignore()
        current = self._current = Transaction(REMOTE)
        try:
            with self._doc.transaction():
                _take_in(self._doc, update)
            current.update = update
        finally:
            self._followed = observe_deep(self._blocks, self._wrote, self._observe_blocks)
            self._end(current)
        return current

    def finish_parts(self, headers: Iterable[BlockHeader] = ()) -> Iterator[None]:
        """Read the order of the blocks that came in parts, some at a time, and then tell of all.

        Args:
            headers: those that are known; others are read when asked for.
        """
        self._headers.update((header.id, header) for header in headers)
        stored = list(self._blocks.keys())
        keys = [key for key in stored if key not in self.order]
        found: list[tuple[str, str]] = []
        for at in range(0, len(keys), _BLOCKS_AT_ONCE):
            found += self._order_keys(keys[at : at + _BLOCKS_AT_ONCE])
            yield
        self.order.add(found)
        self.has_parts = False
        self._changes.notify(DocumentChange(REMOTE, tuple(block for block, _ in found)))

    # Syncing

    def state_vector(self) -> bytes:
        """Return the state vector, as Yjs encodes it."""
        return self._doc.get_state()

    def update_since(self, state_vector: bytes | None = None) -> bytes:
        """Everything that a replica with this state vector has not seen; None for all."""
        return self._doc.get_update(state_vector)

    def parts_since(self, state_vector: bytes | None, size: int) -> Iterator[bytes]:
        """Yield updates that say together what `update_since` does: one, up to so many bytes.

        Receivers would be busy for long with one of a long document. It may change between two
        parts; what is removed, and what has come meanwhile, is in the last one.
        """
        state, now = self.update_since(state_vector), self.state_vector()
        if len(state) <= size:
            yield state
            return
        last: list[bytes] = []
        for part in split_update(state, min(size, _PART_BYTES)):
            yield from last
            last = [part]
        # Whoever has the whole state vector knows what is removed, too.
        yield merge([*last, self.update_since(now)])

    def only_removes_removed(self, update: bytes) -> bool:
        """Return whether an update inserts nothing, and removes only what is removed already.

        That is so of what a replica answers that has written nothing.

        Raises:
            ValueError: if it inserts nothing and cannot be read.
        """
        if not update.startswith(_NO_STRUCTS):
            return False
        removed = IdIntervals(decode_id_set(Snapshot.from_doc(self._doc).encode()))
        return not any(any(removed.lacks(ids)) for ids in decode_update(update).deletions)

    # Watching

    def watch(self, listener: Callable[[DocumentChange], None]) -> Callable[[], None]:
        """Call `listener` after each transaction that changed a block; returns the way to stop."""
        return self._changes.listen(listener)

    def watch_updates(self, listener: Callable[[bytes, object], None]) -> Callable[[], None]:
        """Call `listener` with the update and origin of each transaction."""
        return self._updates.listen(listener)

    def _observe_transaction(self, event: Any) -> None:
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        current.record(event)

    def _wrote(self, path: Sequence[object]) -> bool:
        """Whether all is known of the one change: a text's, by this document or not read here."""
        current = self._current
        if current is None or len(path) < 2 or path[1] != CONTENT:
            return False
        block, section = str(path[0]), path_of(tuple(map(str, path[2:])))
        place = _place(block, section)
        own = self._spliced.get(place)
        if own is None and (not current.only_adds or place in self._mirrors):
            return False
        change = TextChange(block, tuple(own or ()), section)
        current.change = DocumentChange(current.origin, texts=(change,))
        return True

    def _observe_blocks(self, events: list[SharedTypeEvent]) -> None:
        """Apply a transaction's CRDT events to what has been read; record its change."""
        current = self._current
        assert current is not None, "a transaction that this document did not begin"
        added: list[str] = []
        headers: dict[str, frozenset[str]] = {}
        texts: list[TextChange] = []
        contents: dict[ContentChange, None] = {}
        removes = not current.only_adds
        for event in events:
            way, in_map = event.path, event.is_map
            if in_map:
                self._at_hand.clear()
            if not way:
                for block in self._add_to_order(list(event.keys)):
                    added.append(block)
                    self._headers.pop(block, None)
                    self._schemas.pop(block, None)
            elif len(way) == 1 and in_map:
                block, fields = str(way[0]), frozenset(event.keys)
                headers[block] = fields
                self._headers.pop(block, None)
                self._schemas.pop(block, None)
                if not fields.isdisjoint(("order", "status")):
                    for _, order in self._order_keys([block]):
                        self.order.move(block, order)
            elif len(way) >= 2 and way[1] == CONTENT:
                block, names = str(way[0]), tuple(map(str, way[2:]))
                if event.is_text:
                    texts.append(self._text_changed(block, path_of(names), event, removes))
                else:
                    # The parts that are affected, as far as the schema has them.
                    for one in [(*names, key) for key in event.keys] if in_map else [names]:
                        path = path_of(known_names(self.schema(block), one))
                        contents[ContentChange(block, path)] = None
        current.change = DocumentChange(
            current.origin,
            tuple(added),
            tuple(HeaderChange(block, fields) for block, fields in headers.items()),
            tuple(texts),
            tuple(contents),
        )

    def _add_to_order(self, keys: Sequence[str]) -> list[str]:
        """Add those keys of the root that are blocks; values that are no maps are none."""
        added = self._order_keys(keys)
        self.order.add(added)
        return [key for key, _ in added]

    def _order_keys(self, keys: Sequence[str]) -> list[tuple[str, str]]:
        """Return those keys of the root that are blocks, each with its order key.

        Which of them are open is known from then on.
        """
        ordered: list[tuple[str, str]] = []
        for key, found in zip(
            keys, read_fields(self._blocks, keys, ("order", "status")), strict=True
        ):
            if found is None:
                continue
            order, status = found
            ordered.append((key, order if isinstance(order, str) else ""))
            if status in _OPEN or not (isinstance(status, str) and status):
                self._open.add(key)
            else:
                self._open.discard(key)
        return ordered

    def _text_changed(
        self, block: str, section: str | None, event: SharedTypeEvent, removes: bool
    ) -> TextChange:
        place = _place(block, section)
        own = self._spliced.get(place)
        if own is not None:
            return TextChange(block, tuple(own), section)
        mirror = self._mirrors.get(place)
        watches_end = removes and place in self._live_tails
        if watches_end and takes_the_end(event.delta, len(event.target)):
            self._live_tails.discard(place)
        splices = mirror.apply(event.delta) if mirror is not None else ()
        return TextChange(block, splices, section)


def _clearing(known: dict[str, Any]) -> Callable[[object], None]:
    """Return a listener that forgets what is known, and that holds nothing else."""
    return lambda _: known.clear()


def _take_in(doc: Doc[Any], update: bytes) -> None:
    try:
        doc.apply_update(update)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"not a document update: {error}") from error


def _strings_in(stored: Map[Any]) -> dict[str, str]:
    return {key: value for key, value in stored.items() if isinstance(value, str)}


def _place(block: str, section: str | None) -> str:
    """One key for each text; no block id has a slash."""
    return block if section is None else f"{block}/{section}"
