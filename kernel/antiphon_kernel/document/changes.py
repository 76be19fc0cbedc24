"""Changes of a document by a transaction: heard from the CRDT, told by block and code point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pycrdt import Map, Subscription, Text
from pycrdt._base import event_types
from pycrdt._pycrdt import MapEvent, TextEvent

from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.yjs.id_set import IdSet, decode_id_set, decode_state_vector
from antiphon_kernel.yjs.update import EMPTY_UPDATE

REMOTE: Final = "remote"
"""Origin of an update that came from the other side of a connection or from the journal."""


class SharedTypeEvent:
    """A change of one shared type; what it says is computed when it is asked for.

    The library makes an object of each event, with its target, its path and its delta. For text
    that the document itself has just written that takes longer than writing it did; and a delta
    takes the longer, the more pieces the text around it was written in.
    """

    __slots__ = ("_doc", "_event", "is_map", "is_text", "path")

    def __init__(self, event: Any, doc: Any) -> None:
        self._event = event
        self._doc = doc
        self.path: Sequence[int | str] = event.path
        self.is_map = isinstance(event, MapEvent)
        self.is_text = isinstance(event, TextEvent)

    @property
    def keys(self) -> Iterable[str]:
        """The keys of a map that have changed."""
        keys: Iterable[str] = self._event.keys
        return keys

    @property
    def delta(self) -> Iterable[Mapping[str, Any]]:
        """The change of a text, in bytes; its cost grows with the pieces of the text."""
        delta: Iterable[Mapping[str, Any]] = self._event.delta
        return delta

    @property
    def target(self) -> Text:
        """The text that has changed."""
        event: Any = event_types[TextEvent](self._event, self._doc)
        target: Text = event.target
        return target


def observe_deep(
    shared: Map[Any],
    is_known: Callable[[Sequence[object]], bool],
    listener: Callable[[list[SharedTypeEvent]], None],
) -> Subscription:
    """Call `listener` with the events of each transaction that changed something below `shared`.

    Args:
        is_known: asked first, with its path, where there is one event only; it must not fail.
    """
    doc = shared.doc

    def told(events: list[Any]) -> None:
        if len(events) == 1 and is_known(events[0].path):
            return
        with doc._read_transaction(events[0].transaction):  # noqa: SLF001  as the library does it
            try:
                listener([SharedTypeEvent(event, doc) for event in events])
            except Exception as error:  # noqa: BLE001  raised where the transaction ends
                doc._exceptions.append(error)  # noqa: SLF001

    subscription: Subscription = shared.integrated.observe_deep(told)
    return subscription


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text of one block changed: its own, or that of a section.

    The splices are sequential: each offset counts in the text as the earlier ones left it. They
    are empty if nobody has read this block's text from this document yet: then there is no offset
    anywhere that would have to be carried forward.
    """

    block: str
    splices: tuple[TextSplice, ...]
    section: str | None = None
    """The path of the section, or of a text field of a map."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A part of one block's content that is no text changed."""

    block: str
    path: str | None
    """The path of the list, log, counter or field; None if it is the whole content."""


@dataclass(frozen=True, slots=True)
class HeaderChange:
    """These header fields of one block changed."""

    block: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One transaction, as watchers see it."""

    origin: object
    added: tuple[str, ...] = ()
    headers: tuple[HeaderChange, ...] = ()
    texts: tuple[TextChange, ...] = ()
    contents: tuple[ContentChange, ...] = ()
    """Changes of contents besides texts."""

    @property
    def touched(self) -> tuple[str, ...]:
        """Every block that this transaction changed, each once."""
        if len(self.texts) == 1 and not (self.added or self.headers or self.contents):
            return (self.texts[0].block,)
        blocks = dict.fromkeys(self.added)
        blocks.update(dict.fromkeys(change.block for change in self.headers))
        blocks.update(dict.fromkeys(change.block for change in self.texts))
        blocks.update(dict.fromkeys(change.block for change in self.contents))
        return tuple(blocks)


@dataclass(slots=True)
class Transaction:
    """One transaction in the making; filled in when it has ended.

    `update` is None if nothing changed; `deleted` are the CRDT ids it removed; `only_adds` says
    that it is known to remove nothing.
    """

    origin: object
    only_adds: bool = False
    update: bytes | None = None
    deleted: IdSet = ()
    change: DocumentChange = field(init=False)

    def __post_init__(self) -> None:
        self.change = DocumentChange(self.origin)

    def record(self, event: Any) -> None:
        """Take over what the CRDT tells at the end of the transaction."""
        update = event.update
        self.deleted = decode_id_set(event.delete_set)
        changes = update != EMPTY_UPDATE or bool(self.deleted)
        if not changes:  # in the update: what waits for something else is in the states only
            before, after = map(decode_state_vector, (event.before_state, event.after_state))
            changes = before != after
        if changes:
            self.update = update
