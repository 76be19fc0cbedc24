"""Rule by which drifts of models wake models: nobody is woken by what they have set off."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


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
