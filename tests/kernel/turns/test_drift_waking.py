"""The rule by which drifts of models wake others, and every cycle comes to rest."""

from __future__ import annotations

import random

import pytest

from antiphon_kernel.turns.drift_waking import ModelDrift, may_wake


@pytest.mark.parametrize(
    ("before", "person_wrote", "wakes"),
    [
        ([], 0, True),
        ([(1, "A", "B")], 0, True),
        ([(5, "B", "A")], 0, False),
        ([(5, "B", "A")], 5, False),
        ([(5, "B", "A")], 6, True),
        ([(5, "B", "C"), (7, "C", "A")], 0, False),
        ([(5, "B", "C"), (7, "C", "A")], 6, True),
        ([(5, "B", "C"), (6, "C", "D"), (7, "D", "B")], 0, True),
        ([(5, "B", "C"), (6, "C", "D"), (7, "D", "A")], 0, False),
        ([(5, "A", "C"), (6, "C", "B")], 0, True),
    ],
)
def test_may_wake_unless_something_has_come_from_there(
    before: list[tuple[int, str, str]], person_wrote: int, wakes: bool
) -> None:
    drifts = [ModelDrift(*one) for one in before]
    assert may_wake("A", "B", drifts, person_wrote) is wakes


def test_may_wake_within_one_context_is_never() -> None:
    assert not may_wake("A", "A", [], 9)


@pytest.mark.parametrize("contexts", [2, 3, 5])
def test_models_that_drift_to_all_others_on_each_message_come_to_rest(contexts: int) -> None:
    for seed in range(50):
        rng, drifts = random.Random(seed), list[ModelDrift]()
        waiting = [rng.randrange(contexts)]
        turns = 0
        while waiting:
            turns += 1
            assert turns < 2**contexts
            source = waiting.pop(rng.randrange(len(waiting)))
            for target in rng.sample(range(contexts), contexts):
                made = ModelDrift(rng.choice((7, turns)), str(source), str(target))
                if may_wake(made.source, made.target, drifts, 0):
                    waiting.append(target)
                drifts.append(made)
        assert turns >= contexts
