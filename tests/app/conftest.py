"""A kernel with a model in it, and the app on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import textual.app
import textual.pilot
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from tests.app.opened import Opened, World, opened, world
from tests.waiting import screen_updated


@pytest.fixture(autouse=True)
def patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pilot wait for what the app does.

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


PARSED: Final = dict[frozenset[tuple[str, str]], dict[Any, list[RuleSet]]]()
"""Parsed style sheets, by the variables of the theme with which they were parsed."""


@pytest.fixture(autouse=True)
def parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all apps share the style sheets that one of them has parsed."""
    set_variables = Stylesheet.set_variables

    def shared(sheet: Stylesheet, variables: dict[str, str]) -> None:
        sheet._parse_cache = {}  # type: ignore[assignment]  # noqa: SLF001
        set_variables(sheet, variables)
        parsed = PARSED.setdefault(frozenset(variables.items()), {})
        sheet._parse_cache = parsed  # type: ignore[assignment]  # noqa: SLF001

    monkeypatch.setattr(Stylesheet, "set_variables", shared)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as one:
        yield one


@pytest.fixture
async def there(here: World) -> AsyncIterator[Opened]:
    async with opened(here) as one:
        yield one
