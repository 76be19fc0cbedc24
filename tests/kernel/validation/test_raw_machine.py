"""A structured block under random raw updates: only writable texts change."""

from __future__ import annotations

import os
from typing import Any

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import ItemIndex, client_rules, update_validator
from antiphon_kernel.yjs.update import ItemId, decode_update
from tests.kernel.validation.attacks import Attacker

SEEDS = int(os.environ.get("ANTIPHON_CASES", "300")) // 100
ATTEMPTS = 250
WRITABLE = ("state/title", "notes")


class Oracle:
    """Conditions of the block after every update that was accepted."""

    def __init__(self, context: Context, block: str) -> None:
        self._context = context
        self._block = block
        self._header = context.document.header(block)
        self._before = self._fixed(context.document)

    def _fixed(self, document: Document) -> Any:
        """Return what no raw update may change: the content without its writable texts."""
        found = read_content(document, self._block)
        assert not found.violations, [str(one) for one in found.violations]
        state = {name: one for name, one in found.value["state"].items() if name != "title"}
        return {**found.value, "notes": None, "state": state}

    def check(self) -> None:
        assert self._context.document.header(self._block) == self._header
        assert self._fixed(self._context.document) == self._before

    def check_at_the_end(self) -> None:
        """Check that the kernel's places are right and the state can be loaded."""
        document, item_index = self._context.document, self._context.structure.item_index
        state = document.update_since()
        again, kept = ItemIndex(), item_index.encode()
        assert kept is not None
        for _ in again.decode_in_parts(kept):
            pass
        assert again.encode() == kept
        again = ItemIndex()
        again.follow(state)
        loaded = Document(1)
        loaded.apply_update(state)
        assert self._fixed(loaded) == self._before
        for path in WRITABLE:
            assert document.text(self._block, path) == loaded.text(self._block, path)
        for one in decode_update(state).structs:
            for clock in range(one.clock, one.clock + one.length):
                item = ItemId(one.client, clock)
                place, other = item_index.place(item), again.place(item)
                assert place.nature is other.nature
                assert place.container.path == other.container.path


async def attack(context: Context, actor: Actor, block: str, seed: int) -> tuple[int, int]:
    """How many updates were accepted, and how many refused."""
    attacker, oracle = Attacker(context, block, seed), Oracle(context, block)
    accepted = refused = 0
    for _ in range(ATTEMPTS):
        update = attacker.update()
        before = context.document.update_since()
        try:
            await apply_update(context, actor, update, "client")
        except AntiphonError:
            refused += 1
            assert context.document.update_since() == before
        else:
            accepted += 1
            oracle.check()
    oracle.check_at_the_end()
    return accepted, refused


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_random_updates_change_writable_texts_only(
    context: Context, bo: Actor, block: str, seed: int
) -> None:
    accepted, refused = await attack(context, bo, block, seed)
    assert accepted > ATTEMPTS // 10
    assert refused > ATTEMPTS // 10


def nothing(*_: Any, **__: Any) -> None:
    """Stand for a rule that has been switched off."""


SWITCHED_OFF: tuple[tuple[Any, str], ...] = (
    (client_rules.ContentRules, "check_item"),
    (client_rules.ContentRules, "check_deletion"),
    (client_rules, "reject_read_only"),
    (update_validator.UpdateValidator, "_reject_split_surrogates"),
)


@pytest.mark.parametrize(
    ("of", "rule"), SWITCHED_OFF, ids=lambda one: getattr(one, "__name__", one)
)
async def test_random_updates_without_one_of_the_rules_change_more(
    context: Context, bo: Actor, block: str, monkeypatch: pytest.MonkeyPatch, of: Any, rule: str
) -> None:
    monkeypatch.setattr(of, rule, nothing)

    async def attack_in_turn() -> None:
        for seed in range(5):
            await attack(context, bo, block, seed)

    with pytest.raises((AssertionError, ExceptionGroup)):
        await attack_in_turn()
