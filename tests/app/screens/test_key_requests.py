"""An owner who is asked about somebody with an unknown SSH key."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.screens.modals import KeyModal
from tests.app.opened import World, opened
from tests.kernel.access.test_ssh_keys import fingerprint, key_of
from tests.waiting import until


@pytest.mark.parametrize(
    ("key", "role", "words"),
    [("e", "editor", "bo may come in as editor"), ("n", None, "Turned away")],
)
async def test_owner_decides_about_a_key_when_they_like(
    here: World, key: str, role: str | None, words: str
) -> None:
    async with opened(here, size=(100, 30)) as there:
        await there.sees("live")
        asked = asyncio.create_task(here.call("key.ask", key=key_of("bo"), name="bo"))
        await there.sees(f"{fingerprint('bo')} wants to join as bo")
        await there.type("even while I write")
        assert not isinstance(there.app.screen, KeyModal)
        await there.press("ctrl+p")
        await there.type("let somebody")
        await there.sees("Let somebody in who waits")
        await there.press("enter")
        await until(lambda: isinstance(there.app.screen, KeyModal), "the question")
        await there.sees("e editor")
        await there.press(key)
        assert (await asked).get("role") == role
        await there.sees(words)


async def test_question_that_is_left_open_can_be_answered_later(here: World) -> None:
    async with opened(here) as there:
        await there.sees("live")
        asked = asyncio.create_task(here.call("key.ask", key=key_of("bo"), name="bo"))
        await there.sees("wants to join as bo")
        there.screen.perform("decide_key")
        await until(lambda: isinstance(there.app.screen, KeyModal), "the question")
        await there.press("escape")
        assert there.screen.situation.key_waits
        asked.cancel()
        await until(lambda: not here.kernel.key_requests.waiting(), "the guest has gone")
        there.screen.perform("decide_key")
        await until(lambda: isinstance(there.app.screen, KeyModal), "the question again")
        await there.press("v")
        await there.sees("has been decided, or its sender has gone")
