"""Pictures of whole screens: the size of the terminal, and what happens before each is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import pytest
from textual.pilot import Pilot

from antiphon.app import AntiphonApp
from antiphon.options import AppOptions
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN
from tests.app.opened import Opened
from tests.screenshots import plays
from tests.screenshots.scene import NOW_MS, FixedClock, Scene, open_scene
from tests.waiting import fail_with

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture."""

    size: tuple[int, int]
    play: Callable[[Scene, Opened], Awaitable[None]]
    theme: str | None = None
    label: str | None = None
    """Of a context that is made for it; if absent, the default one, which is shown as a demo."""
    models: tuple[str, ...] = ()
    """Models that ask for leave before they do anything."""


GALLERY: Final[Mapping[str, Shot]] = {
    "demo-80x24": Shot(SMALL, plays.editing),
    "first-80x24": Shot(SMALL, plays.pressing("People and models write"), label="notes"),
    "both-80x24": Shot(SMALL, plays.above),
    "blame-80x24": Shot(SMALL, plays.blaming),
    "history-80x24": Shot(SMALL, plays.scrubbing),
    "find-80x24": Shot(SMALL, plays.finding),
    "people-80x24": Shot(SMALL, plays.managing),
    "monochrome-80x24": Shot(SMALL, plays.editing, theme="monochrome"),
    "permission-80x24": Shot(SMALL, plays.asking, label="tidy", models=("bela",)),
    "sidebar-120x40": Shot(MIDDLE, plays.streaming),
    "light-120x40": Shot(MIDDLE, plays.editing, theme="antiphon-light"),
    "wide-200x60": Shot(LARGE, plays.above),
    "file-170x40": Shot((170, 40), plays.beside),
}
"""Those that README and documentation show."""

_LIKE_CELLS: Final = {"both-80x24", "light-120x40", "monochrome-80x24"}
"""Pictures whose texts, themes and sizes are in those of cells and of other screens, too."""

SCREENS: Final[Mapping[str, Shot]] = {
    **{name: shot for name, shot in GALLERY.items() if name not in _LIKE_CELLS},
    "file-80x24": Shot(SMALL, plays.beside),
    "help-80x24": Shot(SMALL, plays.pressing("F1", "f1")),
    "palette-80x24": Shot(SMALL, plays.choosing_action),
    "commands-80x24": Shot(SMALL, plays.pressing("/theme", "slash")),
    "contexts-80x24": Shot(SMALL, plays.choosing_context),
    "open-file-80x24": Shot(SMALL, plays.choosing_file),
    "question-80x24": Shot(SMALL, plays.removing),
    "reading-80x24": Shot(SMALL, plays.pressing("cached up to here", "escape", "w")),
}


class SceneTime(datetime):
    """The moment of every scene, where the app asks for the time of the day."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(NOW_MS / 1_000, tz)


class SceneApp(AntiphonApp):
    """The real app on a kernel that is opened before it and closed after it."""

    def __init__(self, shot: Shot, folder: Path) -> None:
        numbers = count(DRAFT_SEQ_MIN)
        self._shot, self._folder, self._scene_clock = shot, folder, FixedClock()
        super().__init__(
            AppOptions(data=folder / "data", demo=shot.label is None, context=shot.label),
            clock=self._scene_clock,
            new_seq=lambda: next(numbers),
            theme=shot.theme,
            place="demo",
        )

    async def run_async(self, **how: Any) -> Any:
        async with open_scene(self._folder, self._scene_clock, self._shot.models) as self._scene:
            if self._shot.label is not None:
                await self._scene.call(self._scene.you, "context.create", label=self._shot.label)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("antiphon.time_format.datetime", SceneTime)
                async with fail_with(lambda: self._exception):
                    return await super().run_async(**how)

    async def play(self, pilot: Pilot[None]) -> None:
        """Do what happens before the picture."""
        there = Opened(self, pilot)
        await there.live()
        if self._shot.label is None:
            await plays.settled(self._scene, there)
        await self._shot.play(self._scene, there)
