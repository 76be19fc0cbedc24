"""Questions of MCP servers in their cells: what is shown, to whom, and the form that answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from antiphon.actions import Mode
from antiphon.render.view import server_question
from antiphon.screens.questions import READ_SECONDS
from antiphon_kernel.mcp_servers import Answer, Elicitation
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.types.enums import PrincipalKind
from tests.app.opened import Opened, World, opened, world
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


async def ask(here: World, **question: Any) -> asyncio.Task[Answer]:
    """Let a server ask something in the middle of a call of aria's."""
    principal = await here.kernel.principal("aria", PrincipalKind.MODEL)
    actor = here.kernel.open_session(principal, "turn")
    context = await here.context()
    writer = BlockWriter(here.kernel, context, actor)
    prompt = await here.cell("Go on.")
    call = await writer.begin_call(prompt, "tickets__file", "{}", 0)
    await writer.open_result(call)
    asked = Elicitation("tickets", "Who are you?", **question)
    asking = here.turns.questions.ask(writer, call, here.me.principal.id, asked)
    return asyncio.create_task(asking)


def test_others_see_who_may_answer() -> None:
    asked = {"server": "tickets", "message": "Who\nare you?", "fields": [{"title": "Name"}]}
    said = "tickets asks: Who are you? (Name)  An owner answers."
    assert server_question(asked, may_decide=False) == said


async def decide(there: Opened, clock: ManualClock, question: str, key: str) -> None:
    """Press a key when the question has been there for long enough to be read."""
    questions, cells = there.screen.controllers.questions, there.screen.cells
    await there.sees(question)
    await until(lambda: there.screen.situation.asks, "the call is chosen")
    asked = questions._asked  # noqa: SLF001
    await until(lambda: asked.get(cells.focused_cell or "") is not None, "it has been drawn")
    clock.ms += round(1_000 * READ_SECONDS)
    await there.press(key)


async def test_owner_answers_by_a_form_or_without_one(tmp_path: Path) -> None:
    clock = ManualClock()
    async with world(tmp_path) as here, opened(here, clock=clock) as there:
        asked = "tickets asks: Who are you? (Your name, count, colour, sure)"
        answer = await ask(here, schema=FORM)
        await there.sees(asked.split(" (")[0])
        await there.press("escape", mode=Mode.NAVIGATE)
        await decide(there, clock, "o\xa0answer · O\xa0put\xa0aside · n\xa0decline", "o")
        await there.sees("Your name")
        for title in ("count", "colour", "sure"):
            await there.press("enter")
            await there.sees(f"tickets asks: {title}")
        await there.press("enter")
        await there.sees("'name' is a required")
        for line, title in (("amy", "count"), ("", "colour"), ("red", "sure")):
            await there.press(*line, "enter")
            await there.sees(f"tickets asks: {title}")
        await there.press("enter")
        assert await answer == ("accept", {"name": "amy", "count": 3, "colour": "red"})
        await until(lambda: not there.shows("tickets asks"), "the question is gone")

        answer = await ask(here, url="https://example.org/pay")
        await decide(there, clock, "Who are you? https://example.org/pay", "o")
        await there.sees("Have you opened https://example.org/pay?")
        await there.press("y")
        assert await answer == ("accept", None)
        await until(lambda: not there.shows("tickets asks"), "the question is gone")

        answer = await ask(here, schema={**FORM, "properties": {}})
        await decide(there, clock, "tickets asks: Who are you?", "n")
        assert await answer == ("decline", None)
