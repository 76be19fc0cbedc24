"""Rule by which drifts of models wake models: nobody is woken by what they have set off."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.clock import moment_or_start
from antiphon_kernel.types.drift import is_drifted
from antiphon_kernel.types.enums import PrincipalKind


class ModelDrift(NamedTuple):
    """A drift that a model has made."""

    time: int
    """In milliseconds."""
    source: str
    """Id of the context that it came from."""
    target: str


def may_wake(source: str, target: str, before: Collection[ModelDrift], person_wrote: int) -> bool:
    """Return whether a model's drift from one context to another may wake the models there.

    It may not if drifts of models have led from there to here, over whatever contexts, since a
    person last wrote in one of the two. So each drift that wakes leads on to where none has come
    from, and all come to rest when people write no more.

    Args:
        before: the drifts of models that were delivered before this one.
        person_wrote: when a person last wrote in one of the two, in milliseconds.
    """
    later = [one for one in before if one.time >= person_wrote]
    reached, found = {target}, True
    while found:
        new = {one.target for one in later if one.source in reached} - reached
        reached |= new
        found = bool(new)
    return source not in reached


def person_wrote(document: Document) -> int:
    """Return when a person wrote the last block of theirs, in milliseconds; 0 if there is none."""
    members = document.members()
    people = {one.principal for one in members if one.kind == PrincipalKind.HUMAN}
    for block in reversed(document.block_ids()):
        header = document.header(block)
        if header.author in people and not (header.is_draft or is_drifted(header.metadata)):
            return moment_or_start(header.created)
    return 0
