"""Making those who write known to a context's document: name, kind and colour."""

from __future__ import annotations

from antiphon_kernel.document.changes import Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import COLOUR_SLOTS, Actor, Member, Principal
from antiphon_kernel.yjs.merge import merge


def introduce(document: Document, principal: Principal) -> None:
    """Write a principal into a document, if it is not there yet."""
    if document.member(principal.id) is not None:
        return
    members = document.members()
    taken = {member.colour for member in members}
    free = [slot for slot in range(COLOUR_SLOTS) if slot not in taken]
    # Sources are in files only: people and models have the colours there that they have beside.
    at = -1 if principal.kind is PrincipalKind.SOURCE else 0
    colour = free[at] if free else len(members) % COLOUR_SLOTS
    document.set_member(Member(principal.id, principal.username, principal.kind, colour))


def with_member(document: Document, actor: Actor, transaction: Transaction) -> bytes | None:
    """Return the update of a transaction, and with it who made it.

    Whoever changes nothing is not introduced: that would not be in the journal.
    """
    if transaction.update is None or document.member(actor.principal.id) is not None:
        return transaction.update
    with document.transaction("join") as introduced:
        introduce(document, actor.principal)
    assert introduced.update is not None, "a member is new"
    return merge((transaction.update, introduced.update))
