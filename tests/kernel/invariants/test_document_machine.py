"""The document under random people, models, scripts, partitions and restarts."""

from __future__ import annotations

import itertools
import random
from typing import Any

from pycrdt import Doc, Map, Text

from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.client import builds_on_known
from tests.kernel.invariants.machine import run_machine


@cases(0.35)
async def test_document_after_random_steps_is_what_its_journal_says(rng: random.Random) -> None:
    await run_machine(rng)


def replica(client_id: int) -> tuple[Doc[Any], Text, Map[Any]]:
    doc: Doc[Any] = Doc(client_id=client_id)
    return doc, doc.get("text", type=Text), doc.get("map", type=Map)


def three_updates() -> tuple[Doc[Any], list[bytes]]:
    """Three transactions of one client; each writes a key of its own and into one text."""
    doc, text, keys = replica(1)
    updates: list[bytes] = []
    subscription = doc.observe(lambda event: updates.append(event.update))
    for number, letter in enumerate("cba"):
        with doc.transaction():
            keys[str(number)] = letter
            text.insert(0, letter)
    doc.unobserve(subscription)
    return doc, updates


def test_engine_update_applied_too_early_is_lost_until_fetched_by_state_vector() -> None:
    """If this fails, the engine has learnt to wait: `client.py` and the gap rule can relax."""
    doc, updates = three_updates()
    lost = 0
    for order in itertools.permutations(updates):
        other, text, _ = replica(2)
        early = False
        for update in order:
            early = early or not builds_on_known(update, other.get_state())
            other.apply_update(update)
        if str(text) != "abc":
            assert early
            lost += 1
        other.apply_update(doc.get_update(other.get_state()))
        assert str(text) == "abc"
    assert lost > 0
