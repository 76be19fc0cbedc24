"""Validation of a connected client's raw update before it reaches the document.

A client edits texts that are not read-only, creates its own drafts and submits them. Everything
else (header fields, lists, maps, counters and logs, other people's block ids, ``meta``,
``members``) goes through tools. An update is accepted or refused whole.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from antiphon_kernel.access import check_update
from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.validation.client_rules import ContentRules, DraftRules, UpdateScope
from antiphon_kernel.validation.errors import (
    check_limit,
    denied,
    gap,
    misplaced,
    overtaken,
    split_surrogate,
    tools_only,
)
from antiphon_kernel.validation.item_index import BLOCKS, ItemIndex, ItemLocation, ItemRole
from antiphon_kernel.yjs.id_set import IdRange, normalise
from antiphon_kernel.yjs.merge import continuations, squash
from antiphon_kernel.yjs.update import (
    ContentKind,
    DecodedUpdate,
    ItemId,
    Struct,
    decode_update,
)


class ValidatedUpdate(NamedTuple):
    """An update that may be applied, what it creates and submits, with which client ids."""

    update: bytes = b""
    """The update to apply: the same, in a form that costs the engine no more than it should."""
    placed: ItemIndex | None = None
    """The index of its items, to be adopted once it is applied; None if it would change nothing."""
    drafts: tuple[str, ...] = ()
    submitted: tuple[str, ...] = ()
    """Drafts of the actor's, old or new, that it calls done."""
    clients: tuple[int, ...] = ()
    is_text: bool = False
    """Whether it inserts text and does nothing else."""


NOTHING: Final = ValidatedUpdate()

_STEP: Final = 100
"""Items checked between two pauses: a few milliseconds at most."""

_SMALL_ITEMS: Final = 20
"""Items that only continue others; the engine's cost grows with the square of their number."""


def validate(
    scope: UpdateScope,
    update: bytes,
    *,
    decoded: DecodedUpdate | None = None,
    catching_up: bool = False,
) -> ValidatedUpdate:
    """Check one raw update.

    Args:
        decoded: what the update says, if that is known.
        catching_up: whether it is the first of its connection, which may be larger.

    Raises:
        AntiphonError: too_large, invalid_params (not an update, or one that would tear a character
            apart), gap, permission_denied, read_only_field, read_only_section.
    """
    reject_long(update, scope.limits, catching_up=catching_up)
    try:
        decoded = decoded or decode_update(update)
    except ValueError as error:
        raise unreadable(error) from error
    typed = place_typed_text(scope, decoded)
    if typed is not None:
        validated = ValidatedUpdate(update, typed, is_text=True)
    else:
        validator = UpdateValidator(scope)
        validated = validator.validate(decoded, update)
        if len(validator.order) < len(decoded.structs):
            # What is stored begins where its clients had stopped.
            order = sorted(validator.order, key=lambda one: one.client)
            return validated._replace(update=squash(DecodedUpdate(tuple(order), decoded.deletions)))
    if continuations(decoded.structs) > _SMALL_ITEMS:
        return validated._replace(update=squash(decoded))
    return validated


def reject_long(update: bytes, limits: Limits, *, catching_up: bool) -> None:
    """Raises AntiphonError too_large if an update has more bytes than it may have."""
    name = "catch_up_bytes" if catching_up else "update_bytes"
    what = f"An update has {len(update)} bytes"
    check_limit(len(update), limits, name, what, "send it in smaller pieces")


def unreadable(error: ValueError) -> AntiphonError:
    """Return the error for bytes that are no update."""
    return invalid_params(f"The bytes are not a Yjs update (version 1): {error}.")


def place_typed_text(scope: UpdateScope, decoded: DecodedUpdate) -> ItemIndex | None:
    """Check text that goes into texts that are there: what nearly every update brings.

    All that `UpdateValidator` checks of such an update, without what it needs for any other.
    Returns the index of the items that it brings, as `ValidatedUpdate.placed`.

    None if it brings anything else than the next text of one client of the actor's, at places that
    are known, or if it has to be refused for what it builds on.

    Raises:
        AntiphonError: as `validate`.
    """
    _, actor, owners, item_index, limits, _ = scope
    structs = decoded.structs
    if decoded.deletions or not structs or len(structs) > limits.update_structs:
        return None
    client, end = structs[0].client, structs[0].clock
    if owners.get(client) != actor.principal.id or item_index.end(client) != end:
        return None
    check_update(actor.principal, actor.role)
    content = ContentRules(scope)
    placed = ItemIndex(item_index)
    for item in structs:
        if item.kind is not ContentKind.STRING or item.client != client or item.clock != end:
            return None
        if not placed.add_typed(item):
            return None
        end += item.length
    for container, added in placed.grown.items():
        content.check_growth(container, added)
    content.confirm()
    return placed if item_index.order.fit(placed.staged) else None


class UpdateValidator:
    """One update against one document."""

    def __init__(self, scope: UpdateScope) -> None:
        self.scope = scope
        self._known = scope.item_index
        self._staged = ItemIndex(scope.item_index)
        self._content = ContentRules(scope)
        self.order: list[Struct] = []
        """The items that have been checked, each behind those that it builds on."""
        self.texts = bytearray()
        """Of each of them whether it is text and nothing else."""
        self.together: dict[int, int] = {}
        """The start in `order` of the header of a new draft, with its end."""
        self.created: dict[str, int] = {}
        """The index in `order` where each new draft begins."""
        self.submitted: dict[str, int] = {}
        """The index in `order` where each draft is called done."""
        self.deletions: list[IdRange] = []
        """The ids it deletes that were not gone when it was checked."""
        self.replaced: list[IdRange] = []
        """Those of `deletions` that are values of header fields, which something else replaces."""
        self._drafts = DraftRules(scope)

    def validate(self, decoded: DecodedUpdate, update: bytes) -> ValidatedUpdate:
        """Check everything at once; raises as the function `validate`."""
        steps = self.steps(decoded, update)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                validated: ValidatedUpdate = end.value
                return validated

    def steps(
        self, decoded: DecodedUpdate, update: bytes = b""
    ) -> Generator[None, None, ValidatedUpdate]:
        """Check the same, pausing now and then: the document may be written to in between."""
        new = self._new(decoded)
        for item in self._staged.ready(new):
            self._place(item)
            if not len(self.order) % _STEP:
                yield
        # Everything that an update builds on must be here already or come with it.
        if self._staged.missing is not None:
            raise gap(self._staged.missing)
        for one in new if len(self.order) < len(new) else ():
            if one.clock + one.length > self._staged.end(one.client):
                raise gap(ItemId(one.client, one.clock))  # a part of it was skipped
        unclaimed = self._writing_clients()
        for count, _ in enumerate(self._known.order.check(self._staged.staged), 1):
            if not count % _STEP:
                yield
        deletes = yield from self._check_deletions(decoded.deletions)
        self._drafts.check_complete()
        self._content.confirm()
        if not (deletes or new):
            return NOTHING
        if self.deletions:
            self._staged.deletions = normalise(self.deletions)
        drafts, submitted = tuple(self.created), tuple(self.submitted)
        is_text = not decoded.deletions and all(self.texts)
        return ValidatedUpdate(update, self._staged, drafts, submitted, unclaimed, is_text)

    def _new(self, decoded: DecodedUpdate) -> list[Struct]:
        """The items that are not here yet; raises if there are too many or may be none."""
        end, limits = self._known.end, self.scope.limits
        new = [one for one in decoded.structs if one.clock + one.length > end(one.client)]
        if not new:
            return new
        what, advice = f"An update brings {len(new)} items", "send it in smaller pieces"
        check_limit(len(new), limits, "update_structs", what, advice)
        clients = len({one.client for one in new})
        what = f"An update brings items of {clients} CRDT clients"
        advice = "keep one client id while a program runs"
        check_limit(clients, limits, "update_clients", what, advice)
        check_update(self.scope.actor.principal, self.scope.actor.role)
        return new

    def confirm(self) -> None:
        """Look once more at what others can have changed since; to be called when all is checked.

        The items need not be looked at again: nobody but those who write with the same CRDT client
        ids changes what they build on. So this is quick, and what it accepts may be applied whole.

        Raises:
            AntiphonError: as `validate`; gap, if its client ids came through another connection.
        """
        self._writing_clients()
        by = self._staged.overtaken()
        if by is not None:
            raise overtaken(by)
        self._drafts.confirm()
        self._content.confirm()

    def _place(self, item: Struct) -> None:
        """Find out where a new item goes; raises if it may not go there."""
        staged = self._staged
        place = staged.place_of(item)
        known = staged.end(item.client)
        self._reject_split_surrogates(item, place, known)
        if place.nature is ItemRole.FRAME:
            self._check_frame(item, place)
        elif place.nature is not ItemRole.NOTHING:
            self._content.check_item(item, place, max(item.clock, known))
        self.texts.append(item.kind is ContentKind.STRING and place is place.container)
        staged.add(item, place)
        self.order.append(item)

    def _check_frame(self, item: Struct, place: ItemLocation) -> None:
        if item.parent == BLOCKS and item.key is not None:
            self._drafts.create(item)
            self.created[item.key] = len(self.order)
            return
        block = place.container.block or ""
        if block in self.created:
            self._drafts.note(item)
        if self._drafts.submits(item, place, self._staged.statuses(block)):
            self.submitted[block] = len(self.order)
            return
        if not self._drafts.is_field(item, place):
            raise tools_only()
        self.together[self.created[block]] = len(self.order)

    def _reject_split_surrogates(self, item: Struct, place: ItemLocation, known: int) -> None:
        """Neighbours must be in the same container, with no half of a character between them.

        `known`: the clock after what its client has written before.
        """
        staged = self._staged
        beside = item.origin
        if beside is not None and staged.splits_surrogates(beside.client, beside.clock + 1):
            raise split_surrogate(beside)
        after = item.right_origin
        if after is not None:
            if staged.splits_surrogates(after.client, after.clock):
                raise split_surrogate(after)
            if place.container is not staged.place(after).container:
                raise misplaced(item)
        if item.clock < known:
            if item.kind is ContentKind.STRING:
                units = str(item.content).encode("utf-16-le")
                if 0xDC <= units[(known - item.clock) * 2 + 1] <= 0xDF:
                    raise split_surrogate(ItemId(item.client, known))
            begun = staged.place(ItemId(item.client, known - 1))
            if place.container is not begun.container:
                raise misplaced(item)
        parent = item.parent
        if isinstance(parent, ItemId) and staged.made_by(parent) is None:
            if staged.place(parent).nature is not ItemRole.NOTHING:
                raise misplaced(item)

    def _writing_clients(self) -> tuple[int, ...]:
        document, actor, owners, known, _, _ = self.scope
        unclaimed: list[int] = []
        for client in self._staged.lines:
            owner = owners.get(client)
            if owner == actor.principal.id:
                continue
            # What has been written without an owner was by the kernel, in this life or another.
            if owner is not None or client == document.client_id or known.end(client):
                raise denied(
                    f"The CRDT client id {client} belongs to somebody else: use a fresh one."
                )
            unclaimed.append(client)
        return tuple(unclaimed)

    def _check_deletions(self, deletions: tuple[IdRange, ...]) -> Generator[None, None, bool]:
        """Whether the update takes away anything but format marks.

        A reading client repeats what others have deleted, and clears marks that have no effect.
        """
        staged, deleted = self._staged, self._known.deleted
        changes = False
        for count, ids in enumerate(deletions, 1):
            if not count % _STEP:
                yield
            if ids.end > staged.end(ids.client):
                raise gap(ItemId(ids.client, ids.start))
            # As they stand: the engine and the histories cut at the border of each range, touching
            # ones and those inside what is deleted already too.
            for border in (ids.start, ids.end):
                if staged.splits_surrogates(ids.client, border):
                    raise split_surrogate(ItemId(ids.client, border))
            self.deletions += deleted.lacks(ids)
        for count, ids in enumerate(normalise(self.deletions), 1):
            if not count % _STEP:
                yield
            for fresh in deleted.lacks(ids):
                for run, place in staged.runs(fresh):
                    if place.nature is ItemRole.FRAME:
                        self.replaced.append(run)
                        if place.container.block in self.created:
                            self._drafts.reject_deletion(run)
                        elif not self._drafts.replaces(run, place):
                            raise tools_only()
                    elif place.nature in (ItemRole.VALUE, ItemRole.ITEM):
                        check_update(self.scope.actor.principal, self.scope.actor.role)
                        self._content.check_deletion(run, place)
                        changes = True
        return changes
