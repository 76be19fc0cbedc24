"""A structured block under random raw updates: whatever is accepted, it is as its schema says."""

from __future__ import annotations

import os
from typing import Any

import pytest

from antiphon_kernel.document.content import read_content, sums_of
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel.admission import admission, content_rules, part_rules
from antiphon_kernel.kernel.admission.placement import Placement
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.wire.update import ItemId, decode_update
from tests.kernel.kernel.admission.attacks import Attacker

SEEDS = int(os.environ.get("ANTIPHON_CASES", "300")) // 100
ATTEMPTS = 250


class Oracle:
    """What must be true of the block after every update that was accepted."""

    def __init__(self, context: Context, block: str) -> None:
        self._context = context
        self._block = block
        self._header = context.document.header(block)
        self._sealed = self._value("sealed")
        self._fixed = self._value("state/fixed")
        self._log: list[Any] = self._value("log")
        self._sums = self._read_sums()

    def _value(self, path: str) -> Any:
        return read_content(self._context.document, self._block, path).value

    def _read_sums(self) -> dict[str, Any]:
        return sums_of(self._context.document, self._block, "state/count")

    def check(self, update: bytes, *, knew_all: bool) -> None:
        """`knew_all`: whether who wrote it had heard of everything before."""
        found = read_content(self._context.document, self._block)
        assert not found.violations, [str(one) for one in found.violations]
        assert self._context.document.header(self._block) == self._header
        assert self._value("sealed") == self._sealed
        assert self._value("state/fixed") == self._fixed
        before, self._log = self._log, self._value("log")
        if knew_all:
            assert self._log[: len(before)] == before, "something stands before what was known"
        log = iter(self._log)
        assert all(entry in log for entry in before), "entries of the log have gone or moved"
        sums = self._read_sums()
        writers = {str(one.client) for one in decode_update(update).structs}
        for key, own in self._sums.items():
            assert key in writers or sums.get(key) == own, "somebody else's sum has changed"
            assert key in sums, "a sum has gone"
        self._sums = sums

    def check_at_the_end(self) -> None:
        """What the kernel believes of the places is so, and the state can be loaded."""
        document, placement = self._context.document, self._context.structure.placement
        state = document.update_since()
        again = Placement()
        again.follow(state)
        loaded = Document(1)
        loaded.apply_update(state)
        assert read_content(loaded, self._block) == read_content(document, self._block)
        for one in decode_update(state).structs:
            for clock in range(one.clock, one.clock + one.length):
                item = ItemId(one.client, clock)
                ours, theirs = placement.place(item), again.place(item)
                assert ours.nature is theirs.nature
                assert (ours.container.path, ours.key) == (theirs.container.path, theirs.key)


async def attack(context: Context, actor: Actor, block: str, seed: int) -> tuple[int, int]:
    """How many updates were accepted, and how many refused."""
    attacker, oracle = Attacker(context, block, seed), Oracle(context, block)
    accepted = refused = 0
    for _ in range(ATTEMPTS):
        update = attacker.update()
        before = context.document.update_since()
        try:
            await context.remote.apply(actor, update, "client")
        except AntiphonError:
            refused += 1
            assert context.document.update_since() == before
        else:
            accepted += 1
            oracle.check(update, knew_all=attacker.knew_all)
    oracle.check_at_the_end()
    return accepted, refused


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_is_accepted_is_as_the_schema_says(
    context: Context, bo: Actor, block: str, seed: int
) -> None:
    accepted, refused = await attack(context, bo, block, seed)
    assert accepted > ATTEMPTS // 10
    assert refused > ATTEMPTS // 10


def nothing(*_: Any, **__: Any) -> None:
    """What a rule does that has been switched off."""


SWITCHED_OFF: tuple[tuple[Any, str], ...] = (
    (part_rules.Part, "refuse_value"),
    (part_rules.ListRule, "confirm"),
    (part_rules.LogRule, "confirm"),
    (part_rules.LogRule, "delete"),
    (part_rules.FieldRule, "confirm"),
    (part_rules.SumRule, "insert"),
    (part_rules.SumRule, "confirm"),
    (content_rules.ContentRules, "_refuse_place"),
    (content_rules, "refuse_read_only"),
    (admission.UpdateCheck, "_refuse_tears"),
)


@pytest.mark.parametrize(
    ("of", "rule"), SWITCHED_OFF, ids=lambda one: getattr(one, "__name__", one)
)
async def test_without_any_of_the_rules_the_block_breaks(
    context: Context,
    bo: Actor,
    block: str,
    monkeypatch: pytest.MonkeyPatch,
    of: Any,
    rule: str,
) -> None:
    monkeypatch.setattr(of, rule, nothing)

    async def attack_in_turn() -> None:
        for seed in range(5):
            await attack(context, bo, block, seed)

    with pytest.raises(AssertionError):
        await attack_in_turn()
