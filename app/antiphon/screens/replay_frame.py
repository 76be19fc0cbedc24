"""The frame of a replay: the app for somebody who reads, and a row with the position."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partialmethod
from itertools import groupby
from typing import Any, ClassVar, Final

from textual import events, work
from textual.binding import BindingType
from textual.geometry import Size

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.replay.player import Player
from antiphon.replay.replay import ReplayMark
from antiphon.screens.conversation_frame import ConversationFrame
from antiphon.widgets.status import Row, StatusLine, StatusSpan
from antiphon_kernel.types.errors import AntiphonError

STEP_MS: Final = 5_000

_MARKS: Final = {"leave": "◂", "come": "▸", "call": "•", "message": "■"}
"""Signs of marks, those last that are shown of several in one place."""


class ReplayBar(StatusLine):
    """` ▶ 0:42 / 3:10  1×  ━━■━━●─•──`; a click leads to a place."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player = player

    def show(self) -> None:
        self.update_spans((self._words(), self._column(self._player.at_ms, self.size.width)))

    def _words(self) -> str:
        player = self._player
        sign = "▶" if player.is_playing else "‖"
        length = player.replay.duration_ms
        return f"{sign} {_time(player.at_ms)} / {_time(length)}  {player.speed:g}×  "

    def _room(self, width: int) -> int:
        return max(1, width - self.margin - 1 - len(self._words()))

    def _column(self, at_ms: int, width: int) -> int:
        return round(at_ms * (self._room(width) - 1) / max(1, self._player.replay.duration_ms))

    def pieces(self, width: int) -> Row:
        replay, theme, room = self._player.replay, self.cell_theme, self._room(width)
        here = self._column(self._player.at_ms, width)
        signs = [("━" if at < here else "─", theme.dim) for at in range(room)]
        for mark in sorted(replay.marks, key=lambda one: list(_MARKS).index(one.kind)):
            style = theme.author(replay.people[mark.by].colour)
            signs[self._column(mark.at_ms, width)] = _MARKS[mark.kind], style
        signs[here] = "●", theme.focus
        runs = groupby(signs, key=lambda one: one[1])
        bar = [StatusSpan("".join(sign for sign, _ in run), style) for style, run in runs]
        return [StatusSpan(self._words(), theme.text), *bar], ()

    def on_click(self, event: events.Click) -> None:
        room = self._room(self.size.width)
        place = event.x - self.margin - len(self._words())
        if 0 <= place < room:
            self._player.seek(round(self._player.replay.duration_ms * place / max(1, room - 1)))


def _time(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes}:{seconds:02}"


class ReplayFrame(ConversationFrame):
    """Frame without a composer, whose keys go through the replay."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.REPLAY), *bindings(Owner.FRAME)]
    DEFAULT_CSS = """
    ReplayFrame Composer { display: none; }
    /* It is drawn by guesses of what has not been seen, which differ from visit to visit. */
    ReplayFrame CellList { scrollbar-visibility: hidden; }
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self._session.player is not None
        self._player = self._session.player
        self._bar = ReplayBar(self._player)
        self.composer.disabled = True

    async def on_mount(self) -> None:
        await self.mount(self._bar, before=self.footer)
        self.area.cells.focus()
        self._player.moved.listen(self._bar.show)

    def fit(self, size: Size) -> bool:
        changed = super().fit(size)
        self._bar.margin = self.footer.margin
        return changed

    def action_play(self) -> None:
        if self._player.is_playing:
            self._player.pause()
        else:
            self._player.play()

    def _step(self, by_ms: int) -> None:
        self._player.seek(self._player.at_ms + by_ms)

    action_backward = partialmethod(_step, -STEP_MS)
    action_forward = partialmethod(_step, STEP_MS)

    def action_next_mark(self) -> None:
        marks = self._player.replay.marks
        self._go_to(one for one in marks if one.at_ms > self._player.at_ms)

    def action_previous_mark(self) -> None:
        marks = reversed(self._player.replay.marks)
        self._go_to(one for one in marks if one.at_ms < self._player.at_ms)

    def _go_to(self, marks: Iterator[ReplayMark]) -> None:
        mark = next(marks, None)
        if mark is not None:
            self._player.seek(mark.at_ms)
        self.hint("There is no other mark." if mark is None else mark.title)

    def action_replay_start(self) -> None:
        self._player.seek(0)

    def action_replay_end(self) -> None:
        self._player.seek(self._player.replay.duration_ms)

    def _change_speed(self, factor: float) -> None:
        self._player.set_speed(self._player.speed * factor)

    action_faster = partialmethod(_change_speed, 2)
    action_slower = partialmethod(_change_speed, 0.5)

    @work(exit_on_error=False)
    async def action_fork_replay(self) -> None:
        options, version = self._session.options, self._player.version
        if options.context is None:
            self.hint("This replay is of a file: `antiphon replay CONTEXT` can be forked.")
            return
        try:
            async with options.connect() as calls:
                asked = {"context": options.context, "at": version}
                made = await calls.call("context.fork", asked)
        except AntiphonError as error:
            self.hint(f"Not forked: {error.message}")
            return
        self.parts.scope.open_context(str(made["context_id"]))
