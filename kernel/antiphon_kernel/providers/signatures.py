"""Signatures of providers as text: what a provider needs to get back what its model said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SignedPart:
    """One part of a content block as its provider sent it."""

    start: int = 0
    """Offset in the text of the block."""
    end: int = 0
    id: str | None = None
    signature: str | None = None
    details: Mapping[str, Any] | None = None
    """Data of the provider that goes back unchanged."""


@dataclass(frozen=True, slots=True)
class ProviderSignature:
    """Signatures of the parts of a content block; good for the model that signed them only."""

    kind: str
    model: str
    parts: Sequence[SignedPart]

    def text(self) -> str | None:
        """Return the signature as text; None if nothing in it is signed."""
        if not any(one.id or one.signature or one.details for one in self.parts):
            return None
        parts = [
            {key: value for key, value in asdict(part).items() if value is not None}
            for part in self.parts
        ]
        value = {"kind": self.kind, "model": self.model, "parts": parts}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """Read a signature; None if there is none, or if it is of another form."""
        if text is None:
            return None
        try:
            value = json.loads(text)
            parts = [SignedPart(**part) for part in value["parts"]]
            return cls(value["kind"], value["model"], parts)
        except (ValueError, TypeError, KeyError):
            return None
