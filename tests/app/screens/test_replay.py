"""A replay on the screen: the same at every visit of a moment, its keys, and the way to a fork."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from click.testing import CliRunner
from textual.strip import Strip

from antiphon.actions import Mode
from antiphon.app import AntiphonApp
from antiphon.cli.commands import antiphon
from antiphon.options import AppOptions
from antiphon.replay.player import Player
from antiphon.replay.replay import Replay
from antiphon.screens.replay_frame import ReplayBar
from antiphon.textual_patches.screens import terminal_rows
from antiphon_kernel.types.replay import ReplayLine
from tests.app.opened import Opened, World
from tests.app.replay.lines import HEADER, PEOPLE, change, created, presence, written
from tests.app.replay.run import APART_MS, lines_of, played
from tests.app.rows import styled_text
from tests.waiting import until


class Shown(Opened):
    """The app with a replay."""

    @property
    def player(self) -> Player:
        player = self.app.session.player
        assert player is not None
        return player

    async def frame(self, at_ms: int) -> list[Strip]:
        self.player.seek(at_ms)
        self.screen.controllers.draw()
        await self.pilot.pause()
        return terminal_rows(self.app)


@contextlib.asynccontextmanager
async def shown(options: AppOptions) -> AsyncIterator[Shown]:
    app = AntiphonApp(options)
    async with app.run_test(size=(80, 24)) as pilot:
        try:
            yield Shown(app, pilot)
        finally:
            await app.session.close()
            app.exit()


def of_file(lines: Sequence[bytes], *, speed: float | None = None) -> AppOptions:
    replay = Replay.read(lines, max_pause=2.0)
    return AppOptions(data=Path("tale.jsonl"), replay=replay, speed=speed)


async def test_moment_looks_the_same_wherever_one_comes_from(tmp_path: Path) -> None:
    async with played(tmp_path) as run:
        lines = await lines_of(run, "default")
    async with shown(of_file(lines)) as there:
        moments = range(0, there.player.replay.duration_ms + 1, 4 * APART_MS)
        frames = {at: await there.frame(at) for at in moments}
        assert len({styled_text(frame) for frame in frames.values()}) > len(moments) // 2
        for at in random.Random(1).choices(moments, k=4):
            assert styled_text(await there.frame(at)) == styled_text(frames[at]), at


STORY: list[ReplayLine] = [
    presence(0, "amy", "idle"),
    change(1, "amy", created("b1", "amy", "A tale?"), at=2_000),
    change(2, "aria", created("b2", "aria", "Once upon a time.", role="model"), at=4_000),
    change(3, "amy", created("b3", "amy", "Go on."), at=6_000),
    presence(8_000, "amy", "idle", block="b3", cursor=1),
    presence(10_000, "amy", None),
]
WHOLE = written(HEADER, *PEOPLE, *STORY)


async def test_keys_lead_through_a_replay() -> None:
    async with shown(of_file(WHOLE)) as there:
        player = there.player
        for keys, at_ms in (
            ("right", 5_000),
            ("right", 10_000),
            ("shift+left", 6_000),
            ("left", 1_000),
            ("shift+right", 2_000),
            ("end", 10_000),
            ("home", 0),
        ):
            await there.press(keys)
            assert player.at_ms == at_ms, keys
        await there.press("shift+right")
        await there.hint("amy: A tale?")
        assert there.shows("A tale?") and not there.shows("Once")
        for keys, speed in (("plus", 2.0), ("minus", 1.0), ("minus", 0.5)):
            await there.press(keys)
            assert player.speed == speed
        await there.pilot.click(ReplayBar, offset=(78, 0))
        assert player.at_ms == 10_000
        await there.press("enter")
        await there.hint("This replay is of a file")
        for key in ("x", "h", "i"):
            there.screen.hint("")
            await there.press(key)
            await there.hint("This is a replay: it can be read and copied")
        await there.press("up", "Z")
        await there.sees("▸")
        await there.press("slash", *"once", "enter", "y")
        await there.hint("Sent 1 line")
        await there.press("escape")
        await there.press("f2", mode=Mode.CONTEXTS)
        await there.press("escape", mode=Mode.NAVIGATE)


async def test_replay_plays_to_its_end_and_once_more() -> None:
    async with shown(of_file(WHOLE, speed=1_000.0)) as there:
        await there.sees("‖ 0:10 / 0:10")
        moments = list[int]()
        there.player.moved.listen(lambda: moments.append(there.player.at_ms))
        await there.press("space")
        await until(lambda: moments and not there.player.is_playing)
        assert there.player.speed == 100
        assert len(moments) > 2
        assert (moments[0], moments[-1]) == (0, 10_000)
        assert moments == sorted(moments)
        assert there.shows("Go on.")


async def test_enter_forks_the_context_as_it_was_and_opens_the_fork(here: World) -> None:
    for text in ("One.", "Two."):
        await here.cell(text)
    context = (await here.context()).id
    replay = Replay.read(await lines_of(here, "default"))
    options = AppOptions(data=here.data, context=context, replay=replay, speed=None)
    async with shown(options) as there:
        there.player.seek(APART_MS - 1)  # before the second block
        await there.press("enter")
        await there.live()
        await there.sees("One.")
        assert there.app.session.document.label == "default-fork"
        assert not there.shows("Two.")


def test_file_that_is_no_replay_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tale.md"
    file.write_text("# A tale\n")
    result = CliRunner().invoke(antiphon, ["replay", str(file)])
    assert result.exit_code == 1
    assert "Line 1 is none of a replay" in result.output
