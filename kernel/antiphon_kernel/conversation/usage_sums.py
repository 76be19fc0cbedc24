"""Sums of what models have used, for each context, model and person who asked; kept for good."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.providers import TokenUsage
from antiphon_kernel.storage import Journal

_PREFIX: Final = "usage:"


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Sum of what one model has used in one context for one principal."""

    context: str
    model: str
    """Id of the model's principal."""
    asker: str
    """Id of the principal whose messages it answered."""
    used: TokenUsage


class UsageSums:
    """The sums of a kernel, stored with its settings."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, TokenUsage] | None = None

    async def add(self, context: str, model: str, asker: str, used: TokenUsage) -> None:
        """Add what a round has used; on disk when this returns."""
        known = await self._load()
        key = f"{_PREFIX}{context}:{model}:{asker}"
        known[key] = known.get(key, TokenUsage()) + used
        await self._journal.set_setting(key, json.dumps(known[key].as_json()))

    async def all(self) -> list[UsageSum]:
        """Return every sum."""
        sums: list[UsageSum] = []
        for key, used in (await self._load()).items():
            context, model, asker = key.removeprefix(_PREFIX).split(":")
            sums.append(UsageSum(context, model, asker, used))
        return sums

    async def _load(self) -> dict[str, TokenUsage]:
        if self._known is None:
            stored = await self._journal.settings(_PREFIX)
            if self._known is None:
                self._known = {key: TokenUsage.parse(value) for key, value in stored.items()}
        return self._known
