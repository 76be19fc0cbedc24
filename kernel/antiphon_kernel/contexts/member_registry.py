"""Making those who write known to a context's document: name, kind and colour."""

from __future__ import annotations

from antiphon_kernel.document.changes import Transaction
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import COLOUR_SLOTS, Actor, Member, Principal
from antiphon_kernel.yjs.merge import merge


class MemberRegistry:
    """Registry of the members of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.known: set[str] = set()
        """Ids of principals that the document is known to name."""

    def introduce(self, principal: Principal) -> None:
        """Write a principal into the document, if it is not there yet."""
        if principal.id in self.known:
            return
        self.known.add(principal.id)
        if self._document.member(principal.id) is not None:
            return
        members = self._document.members()
        taken = {member.colour for member in members}
        free = [slot for slot in range(COLOUR_SLOTS) if slot not in taken]
        # Sources are in files only: people and models have the colours there that they have beside.
        at = -1 if principal.kind is PrincipalKind.SOURCE else 0
        colour = free[at] if free else len(members) % COLOUR_SLOTS
        member = Member(principal.id, principal.username, principal.kind, colour)
        self._document.set_member(member)

    def with_member(self, actor: Actor, transaction: Transaction) -> bytes | None:
        """The update of a transaction, and with it who made it.

        Whoever changes nothing is not introduced: that would not be in the journal.
        """
        if transaction.update is None or actor.principal.id in self.known:
            return transaction.update
        with self._document.transaction("join") as introduced:
            self.introduce(actor.principal)
        if introduced.update is None:
            return transaction.update
        return merge((transaction.update, introduced.update))
