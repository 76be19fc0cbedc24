"""Frames: what an app shows in a terminal that nobody sees, and since when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from rich.color import blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.constants import DIM_FACTOR

from antiphon.app import AntiphonApp
from antiphon.attention import PROGRAM
from antiphon.locations import config_folder, state_folder
from antiphon.options import AppOptions
from antiphon.replay.replay import Replay
from antiphon.screens.replay_frame import ReplayBar
from antiphon.settings import Settings
from antiphon.textual_patches.screens import refresh_now, terminal_rows
from antiphon.themes import DEFAULT_THEME, bundled_themes_folder, load_themes
from antiphon_kernel.types.errors import invalid_params

FRAME_MS: Final = 100
"""Between two looks at a replay."""

START_SECONDS: Final = 0.2
"""The app has begun by then, in the order of its timers."""

TURNS: Final = 50
"""Of the event loop; in each, every widget handles a message."""

MOST_ROUNDS: Final = 8
"""Times that a frame is drawn until it stays as it is."""


class Look(NamedTuple):
    """Colours, as `#rrggbb`, and letters of cells, as Rich calls them; none is reversed or dim."""

    color: str
    bgcolor: str
    bold: bool = False
    italic: bool = False
    underline: bool = False


Row = tuple[tuple[str, Look], ...]
"""Runs of equal look; together they are as wide as the terminal."""


class Frame(NamedTuple):
    """All rows of a terminal, and since when it shows them."""

    at_ms: int
    rows: tuple[Row, ...]


async def replay_frames(
    replay: Replay, *, size: tuple[int, int], theme: str = DEFAULT_THEME, speed: float = 1.0
) -> list[Frame]:
    """Return what the app shows of a replay, as often as it is another picture.

    Equal replays have equal frames: no settings and no clock but the replay's have a part in them.

    Raises:
        AntiphonError: invalid_params, if there is no such theme.
    """
    known = load_themes(bundled_themes_folder(), config_folder() / "themes").themes
    if theme not in known:
        raise invalid_params(f"There is no theme {theme!r}; known: {', '.join(sorted(known))}.")
    options = AppOptions(data=state_folder(), replay=replay, speed=None)
    app = AntiphonApp(options, theme=theme, place=PROGRAM)
    # Not those of the person here, whose project and other contexts would be beside the text.
    app.settings = Settings(sidebar=False)
    frames: list[Frame] = []
    async with app.run_test(size=size) as pilot:
        player, page = app.session.player, app.document_screen
        assert player is not None
        # Keys, and a place to click at, are of no use in a picture.
        page.frame.footer.display = page.query_one(ReplayBar).display = False

        await pilot.pause(START_SECONDS)
        for at in range(0, round(replay.duration_ms / speed) + FRAME_MS, FRAME_MS):
            player.seek(round(at * speed))
            rows: tuple[Row, ...] = ()
            for _ in range(MOST_ROUNDS):
                page.frame.notice.clear_hint()  # of mistakes in settings; the next shows itself
                page.controllers.draw()
                refresh_now(app)
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                before, rows = rows, shown_rows(app)
                if rows == before:
                    break
            if not frames or frames[-1].rows != rows:
                frames.append(Frame(at, rows))
        await app.session.close()
        app.exit()
    return frames


def shown_rows(app: App[Any]) -> tuple[Row, ...]:
    """Return what an app shows now, whatever its widgets have still to do."""
    return tuple(_row(strip, app.ansi_theme) for strip in terminal_rows(app))


def _row(strip: Iterable[Segment], theme: TerminalTheme) -> Row:
    cells = ((text, _look(style or Style(), theme)) for text, style, _ in strip)
    runs = groupby(cells, key=itemgetter(1))
    return tuple(("".join(text for text, _ in run), look) for look, run in runs)


@lru_cache(4096)
def _look(style: Style, theme: TerminalTheme) -> Look:
    ink = theme.foreground_color if style.color is None else style.color.get_truecolor(theme)
    ground = theme.background_color
    if style.bgcolor is not None:
        ground = style.bgcolor.get_truecolor(theme, foreground=False)
    if style.dim:
        ink = blend_rgb(ground, ink, DIM_FACTOR)
    if style.reverse:
        ink, ground = ground, ink
    letters = (bool(style.bold), bool(style.italic), bool(style.underline))
    return Look(ink.hex, ground.hex, *letters)
