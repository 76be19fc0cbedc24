"""The document under random people, models, scripts, partitions and restarts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kernel.invariants.cases import reproducible, seeds
from tests.kernel.invariants.machine import Machine, describe


@pytest.mark.parametrize("seed", seeds(0.6))
async def test_the_document_is_what_its_journal_says(tmp_path: Path, seed: int) -> None:
    machine = Machine(tmp_path, seed)
    try:
        with reproducible(
            "test_the_document_is_what_its_journal_says", seed, lambda: describe(machine)
        ):
            await machine.run(steps=40)
    finally:
        await machine.world.close()
        shutil.rmtree(tmp_path)
