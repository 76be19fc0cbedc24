"""Rule by which drifts of models wake models: nobody is woken by what they have set off."""

from __future__ import annotations

from collections.abc import Collection

from antiphon_kernel.document.document import Document
from antiphon_kernel.storage import DriftRow
from antiphon_kernel.types.clock import moment_or_start
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import PrincipalKind


def may_wake(drift: DriftRow, later: Collection[DriftRow]) -> bool:
    """Return whether a model's drift may wake the models of its target.

    It may not if drifts of models have led from there to here, over whatever contexts. So each
    drift that wakes leads on to where none has come from, and all come to rest when people write
    no more.

    Args:
        later: the drifts of models since a person last wrote in one of the two contexts.
    """
    reached, new = set[int](), {drift.target}
    while new:
        reached |= new
        new = {one.target for one in later if one.source in new} - reached
    return drift.source not in reached


def person_wrote(document: Document) -> int:
    """Return when a person wrote the last block of theirs, in milliseconds; 0 if there is none."""
    members = document.members()
    people = {one.principal for one in members if one.kind == PrincipalKind.HUMAN}
    for block in reversed(document.block_ids()):
        header = document.header(block)
        if header.author in people and not (header.is_draft or is_drifted(header.metadata)):
            return moment_or_start(header.created)
    return 0
