"""Branches of a conversation: marks, going from one to the next, sending and answering again."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.actions import Mode
from tests.app.opened import Opened, World, opened
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("frequent_looks")

ANSWERS = ("Four.", "It is 4.", "Two and two make four, as far as anybody has found out so far.")


async def branched(here: World, answers: tuple[str, ...] = ANSWERS) -> list[dict[str, Any]]:
    """A question with several answers, each in a context of its own."""
    return [
        await here.call(
            "message.append",
            messages=[
                {"role": "user", "content": "What is 2 + 2?"},
                {"role": "assistant", "content": answer},
            ],
        )
        for answer in answers
    ]


async def navigate(there: Opened, text: str) -> None:
    """Choose the last cell, which says this."""
    await there.sees(text)
    await there.press("up", mode=Mode.NAVIGATE)


async def said(here: World, context: str) -> list[str]:
    found = (await here.call("message.path", context=context))["messages"]
    return ["".join(one.get("text", "") for one in each["message"]["content"]) for each in found]


async def asked(here: World, count: int) -> None:
    await until(lambda: len(here.aria.prompts) == count, "asked again")


async def ask(here: World, there: Opened, question: str, answer: str) -> None:
    """A message from the composer, and what aria says to it."""
    await there.send(question)
    await reply(here, there, answer)


async def reply(here: World, there: Opened, answer: str) -> None:
    here.aria.write(answer)
    here.aria.end()
    await there.sees(answer)
    await here.turns.wait_idle()


async def test_mark_below_a_message_follows_branches_which_keys_go_through_to_both_ends(
    here: World, there: Opened
) -> None:
    await branched(here, ANSWERS[:1])
    await there.sees("Four.")
    assert not there.shows("‹")
    await branched(here, ANSWERS[1:2])
    await there.sees("‹ 1/2 ›")
    await branched(here, ANSWERS[2:])
    await there.sees("‹ 1/3 ›")

    await navigate(there, "Four.")
    await there.press(">")
    await there.sees("‹ 2/3 ›")
    assert there.shows("It is 4.")
    assert not there.shows("Four.")
    await there.mode(Mode.NAVIGATE)
    await there.press(">")
    for size in ((40, 10), (120, 40)):
        await there.pilot.resize_terminal(*size)
        await there.sees("‹ 3/3 ›")
        mark = next(at for at, line in enumerate(there.lines) if "‹ 3/3 ›" in line)
        assert "so far." in " ".join(there.lines[mark - 2 : mark])
        assert sum("‹" in line for line in there.lines) == 1
    await there.press(">")
    await there.sees("This is the last of them.")
    await there.press("<")
    await there.sees("‹ 2/3 ›")
    await there.press("<")
    await there.sees("‹ 1/3 ›")
    await there.press("<")
    await there.sees("This is the first of them.")
    assert there.shows("Four.")


async def test_answers_again_stand_beside_each_other_and_keys_work_in_every_cell_of_one(
    here: World, there: Opened
) -> None:
    await there.send("Look")
    for number in (1, 2):
        await asked(here, 2 * number - 1)
        here.aria.write(f"Try {number}")
        here.aria.run(f"echo out-{number}")
        await there.sees(f"out-{number}")
        await asked(here, 2 * number)
        await reply(here, there, f"End {number}")
        await there.press("escape", "G", mode=Mode.NAVIGATE)
        if number == 1:
            await there.press("a")
    await there.sees("‹ 2/2 ›")
    assert sum("‹" in line for line in there.lines) == 1
    for cells_up in (0, 2):
        await there.press("G", *["k"] * cells_up, "<")
        await there.sees("‹ 1/2 ›")
        await there.press(">")
        await there.sees("‹ 2/2 ›")
        await there.mode(Mode.NAVIGATE)
    await there.press("g", "<")
    await there.sees("No other message stands in the place of this one.")
    await there.press("G", "a")
    await asked(here, 5)
    await reply(here, there, "Nothing.")
    await there.sees("‹ 3/3 ›")
    assert not there.shows("End 2")
    ends = {name: (await said(here, name))[-1] for name in ("default", "default-branch")}
    assert ends == {"default": "End 1", "default-branch": "End 2"}


async def test_unbranched_kernel_is_not_asked_for_branches(here: World, there: Opened) -> None:
    tools: list[str] = []
    call = there.app.session.call

    async def counted(tool: str, params: Any) -> dict[str, Any]:
        tools.append(tool)
        return await call(tool, params)

    there.app.session.call = counted  # type: ignore[method-assign]
    for number in range(5):
        await here.cell(f"cell {number}")
    await there.sees("cell 4")
    await until(lambda: tools.count("context.list") >= 2, "two looks")
    assert "message.branches" not in tools
    await branched(here)
    await until(lambda: "message.branches" in tools, "asked")
    await there.sees(f"/{len(ANSWERS)} ›")

    async def look_twice() -> int:
        looks = tools.count("context.list")
        await until(lambda: tools.count("context.list") >= looks + 2, "two more looks")
        return tools.count("message.branches")

    # What was made between the list and the question is asked about once more.
    assert await look_twice() == await look_twice()


async def test_message_sent_again_is_answered_in_a_branch_with_the_files_that_it_names(
    here: World, there: Opened
) -> None:
    (here.folder / "a.txt").write_text("seven")
    (here.folder / "b.txt").write_text("eight")
    await ask(here, there, "Read @a.txt", "It says seven.")
    await there.press("escape", "k", "k", "s", mode=Mode.WRITE)
    assert there.message == "Read @a.txt"
    await there.sees("Enter send again")
    await there.send(" and @b.txt")
    await until(lambda: here.aria.prompts[-1] == "Read @a.txt and @b.txt", "asked again")
    await reply(here, there, "Seven and eight.")
    assert not there.shows("It says seven.")
    await there.sees("‹ 2/2 ›")
    assert there.message == ""
    texts = {context: await said(here, context) for context in ("default", "default-branch")}
    assert [(one[0], one[-1]) for one in texts.values()] == [
        ("Read @a.txt", "It says seven."),
        ("Read @a.txt and @b.txt", "Seven and eight."),
    ]
    branch = await here.kernel.context("default-branch")
    headers = [branch.document.header(one) for one in branch.document.block_ids()]
    assert sorted(one.path for one in headers if one.path is not None) == ["a.txt", "b.txt"]


async def test_message_that_is_cleared_or_refused_or_of_somebody_else_is_not_sent_again(
    here: World, there: Opened
) -> None:
    await ask(here, there, "One?", "Answer one.")
    await there.press("escape", "s")
    await there.sees("Only a message of your own")
    assert there.message == ""
    await there.press("k", "s", mode=Mode.WRITE)
    await there.press(*["backspace"] * 4)
    await until(lambda: not there.screen.situation.revising, "forgotten")
    await ask(here, there, "Two?", "Answer two.")
    assert await said(here, "default") == ["One?", "Answer one.", "Two?", "Answer two."]

    await there.press("escape", "G", "k", "s", mode=Mode.WRITE)
    block = there.screen.cells.focused_cell
    await here.call("block.exclude", block_id=block, excluded=True)
    await there.send("!")
    await there.sees("Not sent: ")
    await until(lambda: there.message == "Two?!", "kept")
    assert there.screen.situation.revising


async def test_viewer_goes_through_branches_and_changes_none(here: World) -> None:
    await branched(here)
    await here.kernel.principal("vic")
    await here.call("kernel.role", principal="vic", role="viewer")
    async with opened(here, size=(40, 10), as_name="vic") as there:
        await there.sees("‹ 1/3 ›")
        there.screen.call_action("navigate")
        await there.mode(Mode.NAVIGATE)
        await there.press("a")
        await until(lambda: there.screen.frame.notice.hint is not None, "told")
        await there.press(">")
        await there.sees("‹ 2/3 ›")
    assert len(here.kernel.contexts.rows()) == 3
