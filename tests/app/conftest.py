"""A kernel with a model in it, and the app on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip

from antiphon.screens import conversation_controllers
from antiphon.textual_patches.screens import terminal_rows
from antiphon.widgets.status import live_strip
from tests.app.opened import Opened, World, opened, world
from tests.waiting import PATIENCE, screen_updated


@pytest.fixture(autouse=True)
def patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pilot wait for what the app does, and a hint stay until the test has read it.

    Textual takes a process that uses no processor for idle: on a busy machine it may just have to
    wait for one.
    """
    pause = Pilot.pause

    async def patient(pilot: Pilot[object], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await screen_updated()

    monkeypatch.setattr(textual.app, "wait_for_idle", screen_updated)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", screen_updated)
    monkeypatch.setattr(Pilot, "pause", patient)
    for name in ("HINT_SECONDS", "WEIGHTY_SECONDS"):
        monkeypatch.setattr(live_strip, name, 10 * PATIENCE)


@pytest.fixture(autouse=True)
def parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the parsed styles of all apps in this process, of samples of a few widgets too."""

    def parse(sheet: Stylesheet, css: str, **options: Any) -> list[RuleSet]:
        variables = sheet._variables  # noqa: SLF001
        key = frozenset(variables.items()), css, frozenset(options.items())
        if key not in _parsed:
            _parsed[key] = parse_rules(sheet, css, **options)
        return _parsed[key]

    parse_rules = Stylesheet._parse_rules  # noqa: SLF001
    monkeypatch.setattr(Stylesheet, "_parse_rules", parse)


_parsed: dict[Hashable, list[RuleSet]] = {}


DRAWN_ROWS = (
    "tests.app.opened.terminal_rows",
    "tests.app.widgets.block_list.sample.terminal_rows",
    "tests.screenshots.cells.terminal_rows",
    "tests.screenshots.plays.terminal_rows",
)


@pytest.fixture
def every_frame() -> None:
    """Draw every frame, for a test that asks for what only drawing does."""


@pytest.fixture(autouse=True)
def only_seen_frames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what a test looks at, by `Opened.rows`, and of that what has changed since.

    An app without a terminal draws each of its frames and throws it away, which is half of all
    that it does.
    """
    if every_frame.__name__ in request.fixturenames:
        return
    draw = Compositor.render_update
    seen: WeakKeyDictionary[Compositor, list[Strip]] = WeakKeyDictionary()
    stale: WeakKeyDictionary[Compositor, set[Region]] = WeakKeyDictionary()

    def draw_if_seen(compositor: Compositor, full: bool = False, **more: Any) -> object:
        stale.setdefault(compositor, set()).update(compositor._dirty_regions)  # noqa: SLF001
        if full:
            return draw(compositor, full, **more)
        compositor._dirty_regions.clear()  # noqa: SLF001
        return None

    def rows(app: App[Any]) -> list[Strip]:
        compositor = app.screen._compositor  # noqa: SLF001
        before, regions = seen.get(compositor), stale.pop(compositor, set())
        page = compositor.size.region
        if before is None or len(before) != page.height or page in regions:
            seen[compositor] = terminal_rows(app)
        elif regions:
            visible_screen_stack.set(app._background_screens)  # noqa: SLF001
            top, bottom = min(one.y for one in regions), max(one.bottom for one in regions)
            crop = page.intersection(Region(0, top, page.width, bottom - top))
            new = compositor._render_chops(crop, crop.line_range.__contains__)  # noqa: SLF001
            drawn = [Strip.join(new[y].values()) for y in crop.line_range]
            seen[compositor] = [*before[: crop.y], *drawn, *before[crop.bottom :]]
        return seen[compositor]

    monkeypatch.setattr(Compositor, "render_update", draw_if_seen)
    for name in DRAWN_ROWS:
        monkeypatch.setattr(name, rows)


@pytest.fixture(autouse=True)
def forgotten_widgets() -> Iterator[None]:
    """Let go of what the widgets of the test have drawn.

    Textual caches a method by its object: a thousand widgets with all their lines would stay, and
    every collection of garbage in the tests that follow would go through them.
    """
    yield
    StylesCache.get_inner_outer.cache_clear()


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app ask often which contexts there are: tests wait for what it sees then."""
    monkeypatch.setattr(conversation_controllers, "LOOK_SECONDS", 0.2)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as one:
        yield one


@pytest.fixture
async def there(here: World) -> AsyncIterator[Opened]:
    async with opened(here) as one:
        yield one
