"""Settings from a file, and choices that are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from textual.color import Color

from antiphon.locations import config_folder
from antiphon.settings import CHOICES_FILE, SETTINGS_FILE, Settings, SettingsStore
from antiphon.textual_patches.driver import BackgroundReported
from antiphon.themes import DEFAULT_THEME, LIGHT_THEME
from antiphon.widgets.status import HintBar
from tests.app.opened import World, opened
from tests.waiting import until


class Folders:
    """The folders of a person's settings."""

    def __init__(self, folder: Path) -> None:
        self.config, self.state = folder / "config", folder / "state"
        self.config.mkdir()

    def write(self, source: str) -> None:
        (self.config / SETTINGS_FILE).write_text(source)

    def store(self) -> SettingsStore:
        return SettingsStore(self.config, self.state)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_settings_without_a_file_are_the_defaults(folders: Folders) -> None:
    store = folders.store()
    assert (store.read(), store.problems) == (Settings(), ())


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("theme =\n", 1, "no TOML"),
        ("ink = true\ntheme = 7\n", 2, "'theme' has to be text in quotes, found '7'"),
        ('\nink = "yes"\n', 2, "'ink' has to be true or false"),
        ('gutter = "huge"\n', 1, "'auto', 'narrow' or 'wide'"),
        ("thme = 1\n", 1, "there is no setting 'thme'; known: theme"),
    ],
)
def test_settings_file_with_a_mistake_is_a_problem_with_file_and_line(
    folders: Folders, source: str, line: int, words: str
) -> None:
    folders.write(source)
    store = folders.store()
    store.read()
    (problem,) = store.problems
    assert (problem.path.name, problem.line) == (SETTINGS_FILE, line)
    assert words in problem.reason


def test_settings_beside_a_mistake_count(folders: Folders) -> None:
    folders.write("theme = 7\nink = false\nnotifications = 3\n")
    store = folders.store()
    assert store.read() == Settings(ink=False)
    assert [problem.line for problem in store.problems] == [1, 3]


def test_choice_is_remembered_until_the_file_says_something_else(folders: Folders) -> None:
    folders.write('# mine\ntheme = "one"\n')
    store = folders.store()
    assert store.remember(store.read(), "theme", "two").theme == "two"
    remembered = folders.store().read().theme
    folders.write('# mine\ntheme = "three"\n')
    assert (remembered, folders.store().read().theme) == ("two", "three")
    assert (folders.state / CHOICES_FILE).stat().st_mode & 0o777 == 0o600


def test_choices_that_cannot_be_read_are_a_problem_and_written_anew(folders: Folders) -> None:
    folders.state.mkdir()
    (folders.state / CHOICES_FILE).write_text("{")
    store = folders.store()
    settings = store.read()
    assert [problem.path.name for problem in store.problems] == [CHOICES_FILE]
    store.remember(settings, "theme", "two")
    assert folders.store().read().theme == "two"


async def test_theme_of_the_palette_and_sidebar_put_away_stay_so_at_the_next_start(
    here: World,
) -> None:
    async with opened(here, size=(120, 24)) as there:
        await there.palette("Theme: antiphon-light")
        await there.sees("people")
        await there.press("f2", "f2")
        await until(lambda: not there.shows("people"), "the sidebar is away")
        await here.call("context.create", label="notes")
        await there.type("/context notes")
        await there.press("enter", "enter")
        await there.sees("notes")
        assert not there.shows("people"), "in another context"
    async with opened(here, size=(120, 24)) as there:
        assert there.app.theme == there.app.settings.theme == "antiphon-light"
        assert not there.shows("people"), "at the next start"


async def test_several_mistakes_are_one_hint_and_each_a_past_one(here: World) -> None:
    (config_folder() / SETTINGS_FILE).write_text('ink = 1\ntitle = 2\ntheme = "nowhere"\n')
    (config_folder() / "themes").mkdir()
    (config_folder() / "themes" / "mine.toml").write_text("broken")
    async with opened(here) as there:
        hint_bar = there.screen.query_one(HintBar)
        await there.sees("4 mistakes in settings.toml, mine.toml: Show past hints")
        hint_bar.clear_hint()
        assert hint_bar.hint is None
        await there.send("/hints")
        for words in ("'ink'", "'title'", "'nowhere'; known", "TOML:"):
            await there.sees(words)
        assert there.app.theme == DEFAULT_THEME


@pytest.mark.parametrize(
    ("source", "theme", "wide_at"),
    [
        ("", LIGHT_THEME, {80: False, 120: True}),
        (f'theme = "{DEFAULT_THEME}"\ngutter = "wide"\n', DEFAULT_THEME, {80: True}),
        ('gutter = "narrow"\n', LIGHT_THEME, {120: False}),
    ],
    ids=["auto", "wide", "narrow"],
)
async def test_gutter_and_theme_are_those_of_the_settings_or_fit_a_light_terminal(
    here: World, source: str, theme: str, wide_at: Mapping[int, bool]
) -> None:
    (config_folder() / SETTINGS_FILE).write_text(source)
    await here.cell("some text")
    async with opened(here) as there:
        there.app.post_message(BackgroundReported(Color(255, 250, 240)))
        await there.pilot.pause()
        assert there.app.theme == theme
        assert there.app.settings.theme == (theme if "theme" in source else None)
        for columns, is_wide in wide_at.items():
            await there.pilot.resize_terminal(columns, 24)
            await there.sees("some text")
            left = there.screen.composer.region.x + (9 if is_wide else 3)

            def row() -> str:
                return next((line for line in there.lines if "some text" in line), "")

            await until(lambda: row().find("some text") == left, f"at {columns}")  # noqa: B023
            assert ("bela" in row()) == is_wide
