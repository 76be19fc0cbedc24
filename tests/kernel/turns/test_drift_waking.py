"""The rule by which drifts of models wake others, and every cycle comes to rest."""

from __future__ import annotations

import random

import pytest

from antiphon_kernel.storage import DriftRow
from antiphon_kernel.turns.runner import may_wake
from antiphon_kernel.types.enums import DriftKind


def drift(source: str, target: str) -> DriftRow:
    return DriftRow("1", DriftKind.PUSH, ord(source), 1, ord(target), "aria", 0)


@pytest.mark.parametrize(
    ("later", "wakes"),
    [
        ("", True),
        ("AB", True),
        ("BA", False),
        ("BC CA", False),
        ("CA BC", False),
        ("BC CD DB", True),
        ("BC CD DA", False),
        ("AC CB", True),
    ],
)
def test_may_wake_unless_something_has_come_from_there(later: str, wakes: bool) -> None:
    assert may_wake(drift(*"AB"), [drift(*one) for one in later.split()]) is wakes


def test_may_wake_within_one_context_is_never() -> None:
    assert not may_wake(drift(*"AA"), [])


@pytest.mark.parametrize("contexts", [2, 3, 5])
def test_models_that_drift_to_all_others_on_each_message_come_to_rest(contexts: int) -> None:
    for seed in range(50):
        rng, drifts = random.Random(seed), list[DriftRow]()
        waiting = [rng.randrange(contexts)]
        turns = 0
        while waiting:
            turns += 1
            assert turns < 2**contexts
            source = waiting.pop(rng.randrange(len(waiting)))
            for target in rng.sample(range(contexts), contexts):
                made = drift(chr(source), chr(target))
                if may_wake(made, drifts):
                    waiting.append(target)
                drifts.append(made)
        assert turns >= contexts
