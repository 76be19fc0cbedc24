"""How many random cases run: `ANTIPHON_CASES`, by default so few that they fit into every run.

The number is that of the whole folder, of which each test has a share. A test's name says with
which `ANTIPHON_SEED` one case of it is run alone.

No hypothesis here: 278 cases of the document machine as a `RuleBasedStateMachine` noticed none of
the rarer faults of test_controls.py, of which seeds notice one in ten cases, and a third of them
were repetitions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable

import pytest

CASES = int(os.environ.get("ANTIPHON_CASES", "18"))


def cases(share: float) -> pytest.MarkDecorator:
    """Run a test with an `rng` for each case of this share of all."""
    alone = os.environ.get("ANTIPHON_SEED")
    seeds = range(max(1, round(share * CASES))) if alone is None else [int(alone)]
    return pytest.mark.parametrize(
        "rng", seeds, ids=lambda seed: f"ANTIPHON_SEED={seed}", indirect=True
    )


async def run_cases(
    count: int, play: Callable[[random.Random], Awaitable[None]], first: int = 0
) -> None:
    """So many cases in one test, which must fail in one of them, best in the first."""
    for seed in (*range(first, count), *range(first)):
        await play(random.Random(seed))
