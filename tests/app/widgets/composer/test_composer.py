from __future__ import annotations

import time

from antiphon.screens.submitter import SLOW
from antiphon.session import SILENT_SECONDS
from antiphon.widgets.composer.draft_sync import LOCAL_BLOCK, ORIGIN
from antiphon_kernel.types.enums import Status
from tests.app.opened import Opened, World, opened, through_proxy
from tests.waiting import until


async def draft_in_kernel(here: World) -> list[str]:
    """Texts of what has been written and not sent."""
    document = (await here.context()).document
    return [
        document.text(block)
        for block in document.block_ids()
        if document.header(block).is_draft and document.text(block)
    ]


async def kernel_has_draft(here: World, text: str) -> None:
    document = (await here.context()).document
    await until(
        lambda: any(
            document.text(block) == text
            for block in document.block_ids()
            if document.header(block).is_draft
        ),
        f"the draft {text!r}",
    )


async def sent(here: World, text: str) -> None:
    document = (await here.context()).document
    await until(
        lambda: any(
            document.text(block) == text and document.header(block).status == Status.DONE
            for block in document.block_ids()
        ),
        f"{text!r} is sent",
    )


async def test_draft_being_typed_is_shown_to_others(here: World) -> None:
    async with opened(here, as_name="guest") as there:
        await there.type("hello")
        await kernel_has_draft(here, "hello")
        async with opened(here) as mine:
            await mine.sees("guest › hello")
            await there.press("ctrl+u")
            await until(lambda: not mine.shows("guest ›"), "the line has gone")


async def test_enter_sends_and_a_turn_begins(here: World, there: Opened) -> None:
    await there.type("What is this?")
    await there.press("enter")
    assert there.message == ""
    await sent(here, "What is this?")
    await until(lambda: here.aria.prompts == ["What is this?"], "the model is asked")
    await there.sees("What is this?")
    here.aria.write("An antiphon.")
    await there.sees("An antiphon.")
    here.aria.end()


async def test_empty_message_cannot_be_sent(there: Opened) -> None:
    await there.type("  ")
    await there.press("enter")
    await until(lambda: there.screen.hint_shown, "a hint")
    assert there.message == "  "


async def test_composer_ctrl_j_shift_enter_and_backslash_enter_insert_newline(
    there: Opened,
) -> None:
    await there.press("a", "ctrl+j", "b", "shift+enter", "c", "backslash", "enter", "d")
    assert there.message == "a\nb\nc\nd"
    await until(lambda: there.screen.composer.size.height == 4, "four rows")


async def test_composer_grows_to_half_the_screen_and_then_scrolls(there: Opened) -> None:
    there.screen.composer.draft.write("a\n" * 30)
    await until(lambda: there.screen.composer.size.height == 12, "half of 24 rows")


async def test_windows_of_one_user_have_separate_drafts(here: World) -> None:
    async with opened(here) as one:
        await one.type("one")
        await kernel_has_draft(here, "one")
        async with opened(here) as two:
            await two.type("two")
            await kernel_has_draft(here, "two")
            assert (one.message, two.message) == ("one", "two")


async def test_message_on_its_way_is_a_dim_cell_at_the_tail_until_it_arrives(here: World) -> None:
    async with through_proxy(here) as proxy, opened(here) as there:
        await there.type("hello")
        await kernel_has_draft(here, "hello")
        message = str(there.screen.composer.draft.block)
        for number in range(30):
            await here.cell(f"filler {number}")
        await there.sees("filler 29")
        proxy.stop()
        await there.press("enter")
        await there.sees("│ hello")
        width = there.app.size.width - 1  # without the scroll bar
        last = [line[:width].rstrip() for line in there.lines if "│" in line][-1]
        assert last.startswith(" │ hello") and last.endswith("sending")
        await there.press("pageup", "pageup", "ctrl+end")
        assert there.shows("sending")
        await there.press("escape")
        await until(lambda: there.screen.cells.focused_cell == message, "the message is chosen")
        assert "on its way" in (there.screen.source.edit_denied_reason(message) or "")
        proxy.go_on()
        await sent(here, "hello")
        await until(lambda: not there.shows("sending"), "it has arrived")
        assert sum("hello" in line for line in there.lines) == 1


async def test_message_that_is_refused_is_no_cell_but_in_the_composer(here: World) -> None:
    async with through_proxy(here) as proxy, opened(here) as there:
        await there.type("hello")
        await kernel_has_draft(here, "hello")
        proxy.stop()
        await there.press("enter")
        await there.sees("sending")
        await proxy.close()
        await until(lambda: there.message == "hello", "it is back")
        assert not there.shows("│ hello")


async def test_kernel_that_does_not_answer_is_named_while_a_message_is_on_its_way(
    here: World,
) -> None:
    async with through_proxy(here) as proxy, opened(here) as there:
        await there.type("hello")
        await kernel_has_draft(here, "hello")
        proxy.stop()
        await there.press("enter")
        await there.sees("sending")
        await until(lambda: there.screen.hint_shown == SLOW, "told")
        assert there.message == ""
        await there.sees("not answering")
        proxy.go_on()
        await sent(here, "hello")
        await until(lambda: not there.shows("sending"), "it has arrived")
        await until(lambda: not there.shows("not answering"), "answered")


async def test_a_kernel_that_leaves_edits_unanswered_is_named_with_their_number(
    here: World,
) -> None:
    async with through_proxy(here) as proxy, opened(here, size=(120, 30)) as there:
        await there.type("he")
        await kernel_has_draft(here, "he")
        await until(lambda: not there.app.session.status.unsaved, "saved")
        proxy.stop()
        begun = time.monotonic()
        await there.type("llo")
        await there.sees("not answering · 3 unsaved")
        assert time.monotonic() - begun >= SILENT_SECONDS
        proxy.go_on()
        await until(lambda: not there.shows("not answering"), "answered")
        await kernel_has_draft(here, "hello")


async def test_a_message_with_a_rejected_edit_is_in_the_composer_and_can_be_sent(
    here: World, there: Opened
) -> None:
    cell = await here.cell("some text")
    await there.sees("some text")
    await there.type("hel")
    await kernel_has_draft(here, "hel")
    document = there.app.session.document
    with document.transaction(ORIGIN):
        document.set_fields(cell, status="error")
        there.screen.composer.draft.local.append(LOCAL_BLOCK, "lo")
    await there.press("enter")
    await until(lambda: there.app.session.document is not document, "another document")
    await there.live()
    await until(lambda: there.message == "hello", "the message is there")
    await there.press("enter")
    await sent(here, "hello")
    assert await draft_in_kernel(here) == []
