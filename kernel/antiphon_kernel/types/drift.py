"""Origin of what has drifted from one context to another, as the metadata of blocks say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from antiphon_kernel.types.block_metadata import DRIFT


@dataclass(frozen=True, slots=True)
class DriftOrigin:
    """Origin of a drift; it says what was true when it was delivered."""

    id: str
    """Id of the drift."""
    context: str
    """Id of the source."""
    label: str
    """The source's."""
    version: int
    """Version of the source that was read."""
    by: str
    """Username of whoever did it."""
    blocks: tuple[str, ...] = ()
    """Ids of the blocks of the source."""
    lineage: tuple[str, ...] = ()
    """Ids of the contexts that it came through before, the first one first."""
    wakes: bool = False
    """Whether the models of the target answer it."""

    def as_json(self) -> dict[str, Any]:
        """Return the value of the metadata of a block of kind drift."""
        said: dict[str, Any] = _ORIGIN.dump_python(self, mode="json")
        return said


_ORIGIN: TypeAdapter[DriftOrigin] = TypeAdapter(DriftOrigin)


def drift_origin(metadata: Mapping[str, Any]) -> DriftOrigin | None:
    """Return the origin that the metadata of a block of kind drift state; None if it cannot be."""
    try:
        return _ORIGIN.validate_python(dict(metadata[DRIFT]))
    except (KeyError, TypeError, ValueError, ValidationError):
        return None


def is_drifted(metadata: Mapping[str, Any]) -> bool:
    """Return whether a block came with a drift, and is part of its message."""
    return isinstance(metadata.get(DRIFT), str)


def drift_id(metadata: Mapping[str, Any]) -> str | None:
    """Return the id of the drift that a block is, or came with; None if there is none."""
    said = metadata.get(DRIFT)
    return said.get("id") if isinstance(said, Mapping) else said
