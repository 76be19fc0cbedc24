"""Questions of MCP servers in their cells: what is shown, to whom, and the form that answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from antiphon.actions import Mode
from antiphon.render.view import server_question
from antiphon.screens.questions import READ_SECONDS
from antiphon_kernel.mcp_servers import Elicitation, ElicitationAnswer
from antiphon_kernel.turns.block_writer import BlockWriter, begin_call, open_result
from antiphon_kernel.types.enums import PrincipalKind
from tests.app.opened import World, opened, world
from tests.clocks import ManualClock
from tests.waiting import until

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "count": {"type": "integer", "default": 3},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "sure": {"type": "boolean"},
    },
    "required": ["name"],
}


async def ask(here: World, **question: Any) -> asyncio.Task[ElicitationAnswer]:
    """Let a server ask something in the middle of a call of aria's."""
    principal = await here.kernel.principal("aria", PrincipalKind.MODEL)
    actor = here.kernel.open_session(principal, "turn")
    context = await here.context()
    writer = BlockWriter(here.kernel, context, actor)
    prompt = await here.cell("Go on.")
    call = await begin_call(writer, prompt, f"c-{len(question)}", "tickets__file", "{}", 0)
    await open_result(writer, call)
    asked = Elicitation("tickets", "Who are you?", **question)
    asking = here.turns.questions.ask(writer, call, here.me.principal.id, asked)
    return asyncio.create_task(asking)


def test_others_see_who_may_answer() -> None:
    asked = {"server": "tickets", "message": "Who\nare you?", "fields": [{"title": "Name"}]}
    said = "tickets asks: Who are you? (Name)  An owner answers."
    assert server_question(asked, may_decide=False) == said


async def test_owner_answers_by_a_form_or_without_one(tmp_path: Path) -> None:
    clock = ManualClock()
    async with world(tmp_path) as here, opened(here, clock=clock) as there:
        asked = "tickets asks: Who are you? (Your name, count, colour, sure)"
        answer = await ask(here, schema=FORM)
        await there.sees(asked.split(" (")[0])
        await there.press("escape", mode=Mode.NAVIGATE)
        await until(lambda: there.screen.situation.asks, "the call is chosen")
        await there.sees("o\xa0answer · O\xa0put\xa0aside · n\xa0decline")
        clock.ms += round(1_000 * READ_SECONDS)
        await there.press("o")
        await there.sees("Your name")
        await there.press("ctrl+s")
        await there.sees("'name' is a required")
        await there.press(*"amy", "tab", "tab", "enter", "down", "enter", "ctrl+s")
        assert await answer == ElicitationAnswer(
            "accept", {"name": "amy", "count": 3, "colour": "red"}
        )
        await until(lambda: not there.shows("tickets asks"), "the question is gone")

        answer = await ask(here, url="https://example.org/pay")
        await there.sees("Who are you? https://example.org/pay")
        await until(lambda: there.screen.situation.asks, "the next call is chosen")
        clock.ms += round(1_000 * READ_SECONDS)
        await there.press("o")
        await there.sees("Have you opened https://example.org/pay?")
        await there.press("y")
        assert await answer == ElicitationAnswer("accept")

        answer = await ask(here, schema={**FORM, "properties": {}})
        await until(lambda: there.screen.situation.asks, "the next call is chosen")
        clock.ms += round(1_000 * READ_SECONDS)
        await there.press("n")
        assert await answer == ElicitationAnswer("decline")
