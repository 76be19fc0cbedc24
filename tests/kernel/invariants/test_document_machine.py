"""The document under random people, models, scripts, partitions and restarts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kernel.invariants.cases import again, seeds
from tests.kernel.invariants.machine import Machine, describe


@pytest.mark.parametrize("seed", seeds(0.6))
async def test_the_document_is_what_its_journal_says(tmp_path: Path, seed: int) -> None:
    machine = Machine(tmp_path, seed)
    try:
        await machine.run(steps=40)
    except BaseException as error:
        error.add_note(describe(machine))
        error.add_note(again("test_the_document_is_what_its_journal_says", seed))
        raise
    finally:
        await machine.world.close()
        shutil.rmtree(tmp_path)
