"""Count of what a provider would have read from its cache, by Anthropic's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

LOOK_BACK: Final = 20
"""Blocks before a mark at which an earlier request may have ended its own."""

MOST_MARKS: Final = 4


@dataclass(frozen=True)
class CacheReading:
    """Share of one request that was in the cache."""

    blocks: int
    """Content blocks of the request: tools, system, messages."""
    cached: int
    """Of them, the first so many were in the cache."""
    marks: int
    """Blocks that were marked."""


@dataclass
class PromptCache:
    """Marked beginnings of the requests so far; only bodies of Anthropic's format have marks."""

    _kept: set[str] = field(default_factory=set)

    def read(self, body: dict[str, Any]) -> CacheReading:
        """Return what of a request was there already, and keep what it marks."""
        blocks = list(_blocks(body))
        marks = [at for at, block in enumerate(blocks) if "cache_control" in block]
        assert len(marks) <= MOST_MARKS, f"{len(marks)} blocks are marked, {MOST_MARKS} at most"
        beginnings: list[str] = []
        digest = sha256()
        for block in blocks:
            plain = {key: value for key, value in block.items() if key != "cache_control"}
            digest.update(json.dumps(plain, sort_keys=True).encode() + b"\n")
            beginnings.append(digest.hexdigest())
        hits = [
            at
            for mark in marks
            for at in range(max(0, mark - LOOK_BACK), mark + 1)
            if beginnings[at] in self._kept
        ]
        self._kept.update(beginnings[mark] for mark in marks)
        return CacheReading(len(blocks), max(hits, default=-1) + 1, len(marks))


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools", ())
    system = body.get("system", ())
    yield from [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body.get("messages", ()):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from ({"role": message["role"], **block} for block in blocks)
