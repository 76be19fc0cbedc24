"""The player's document is what the journal says, wherever it has come from."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.replay.player import Player
from antiphon.replay.replay import Replay
from antiphon_kernel.contexts.lineage import read_version
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.block_metadata import is_cut_out
from tests.app.opened import World, Writer, world
from tests.app.replay.run import lines_of, play


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[World]:
    bran = Writer()
    async with world(tmp_path, others={"bran": bran}) as here:
        await play(here, bran)
        yield here


def blocks_of(document: Document) -> dict[str, tuple[Any, str]]:
    return {
        block: (
            document.header(block)._replace(metadata={}, runs_for=None, source_context=None),
            document.text(block),
        )
        for block in document.block_ids()
        if not is_cut_out(document.header(block))
    }


async def test_document_is_what_the_journal_says_at_every_moment(run: World) -> None:
    rng = random.Random(1)
    for label in ("default", "fork"):
        context = await run.kernel.context(label)
        player = Player(Replay.read(await lines_of(run, label), max_pause=None))
        steps = player.replay.steps
        moments = [step.at_ms for step in rng.choices(steps, k=50)]
        for at in (steps[-1].at_ms, *moments, 0, steps[-1].at_ms):
            player.seek(at)
            there = await read_version(run.kernel.journal, context.row, player.version, 99)
            assert blocks_of(player.document) == blocks_of(there), at
