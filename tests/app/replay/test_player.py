"""The player's document is what the journal says, wherever it has come from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from antiphon.replay.player import Player
from antiphon.replay.replay import STEPS_APART, Replay
from antiphon_kernel.contexts.lineage.forking import read_version
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.replay import SplicedText
from tests.app.opened import World
from tests.app.replay.lines import HEADER, PEOPLE, change, created, long_replay, presence, written
from tests.app.replay.run import lines_of, played

UNTOLD: dict[str, Any] = {"metadata": {}, "runs_for": None, "source_context": None}


def blocks_of(document: Document) -> dict[str, tuple[Any, str]]:
    return {
        block: (
            document.header(block)._replace(metadata={}, runs_for=None, source_context=None),
            document.text(block),
        )
        for block in document.block_ids()
        if not is_cut_out(document.header(block))
    }


async def test_document_is_what_the_journal_says_at_every_moment(tmp_path: Path) -> None:
    async with played(tmp_path) as run:
        await check(run)


async def check(run: World) -> None:
    rng = random.Random(1)
    for label in ("default", "fork"):
        context = await run.kernel.context(label)
        player = Player(Replay.read(await lines_of(run, label)))
        steps = player.replay.steps
        moments = [step.at_ms for step in rng.choices(steps, k=50)]
        for at in (steps[-1].at_ms, *moments, 0, steps[-1].at_ms):
            player.seek(at)
            there = await read_version(run.kernel.journal, context.row, player.version, 99)
            assert blocks_of(player.document) == blocks_of(there), at


def test_seek_makes_few_edits_wherever_it_leads() -> None:
    """Blocks that differ are written once each, and what was written lately edit by edit."""
    player = Player(Replay.read(long_replay(40, 60)))
    length, rng, edited = player.replay.duration_ms, random.Random(1), list[str]()
    player.document.watch(lambda change: edited.extend(change.touched))
    assert len(player.replay.steps) > 10 * STEPS_APART
    for at in [length, 0, *(rng.randrange(length) for _ in range(20))]:
        edited.clear()
        player.seek(at)
        assert len(edited) <= len(player.replay.last.blocks) + STEPS_APART
    player.seek(length)
    edited.clear()
    player.seek(length - 1)
    assert 0 < len(edited) < 100


def test_presence_is_as_recorded_and_moves_with_the_text() -> None:
    splice = SplicedText(block="b1", offset=0, inserted="Oh, ")
    lines = written(
        HEADER,
        *PEOPLE,
        change(1, "amy", created("b1", "amy", "one two"), at=0),
        presence(50, "amy", "typing", block="b1", cursor=7),
        change(2, "aria", created("b2", "aria", "A", role="model", status="running"), at=100),
        presence(150, "aria", "streaming", block="b2", cursor=1),
        change(3, "aria", SplicedText(block="b2", offset=1, inserted=" fox"), at=200),
        presence(300, "ben", "idle", block="b1", cursor=3, anchor=7),
        change(4, "amy", splice, at=400),
        presence(4_000, "amy", "typing", block="b2", cursor=1),
        presence(5_000, "ben", None),
    )
    player = Player(Replay.read(lines))

    def present(at_ms: int) -> dict[str, tuple[object, ...]]:
        player.seek(at_ms)
        found = player.presence().values()
        return {one.username: (one.activity, one.block, one.cursor, one.anchor) for one in found}

    amy = {"amy": ("typing", "b1", 7, None)}
    aria = {"aria": ("streaming", "b2", 5, None)}
    at_moments = {
        0: {},
        50: amy,
        150: {**amy, "aria": ("streaming", "b2", 1, None)},
        300: {**amy, **aria, "ben": ("idle", "b1", 3, 7)},
        3_500: {**aria, "amy": ("typing", "b1", 11, None), "ben": ("idle", "b1", 7, 11)},
        5_000: {**aria, "amy": ("typing", "b2", 1, None)},
    }
    for at in (*at_moments, *reversed(at_moments)):
        assert present(at) == at_moments[at], at


def test_version_before_the_first_change_is_one_that_can_be_forked() -> None:
    player = Player(Replay.read(written(HEADER, *PEOPLE)))
    assert player.version == 1
