"""The document under random people, models, scripts, partitions and restarts."""

from __future__ import annotations

import random

from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.machine import run_machine


@cases(0.6)
async def test_document_after_random_steps_is_what_its_journal_says(rng: random.Random) -> None:
    await run_machine(rng)
