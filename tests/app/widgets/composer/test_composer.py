from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.screens.submitter import SLOW
from antiphon.session import SILENT_SECONDS
from antiphon.widgets.composer.draft_sync import LOCAL_BLOCK, ORIGIN
from tests.app.opened import Opened, World, opened, through_proxy
from tests.kernel.served import CuttableProxy
from tests.waiting import until


async def in_kernel(here: World, text: str, *, is_draft: bool) -> None:
    """Wait until the kernel has a text, as a draft or as a message that is sent."""
    document = (await here.context()).document
    await until(
        lambda: (
            (text, is_draft)
            in [(document.text(one), document.header(one).is_draft) for one in document.block_ids()]
        ),
        f"{text!r} as a {'draft' if is_draft else 'message'}",
    )


@asynccontextmanager
async def typed(
    here: World, text: str = "hello", **options: Any
) -> AsyncIterator[tuple[CuttableProxy, Opened]]:
    """Type a text, which the kernel has, in an app that reaches it through a proxy."""
    async with through_proxy(here) as proxy, opened(here, **options) as there:
        await there.type(text)
        await in_kernel(here, text, is_draft=True)
        yield proxy, there


async def test_composer_breaks_lines_grows_to_half_the_screen_and_is_of_one_window(
    here: World, there: Opened
) -> None:
    await there.press("a", "ctrl+j", "b", "shift+enter", "c", "backslash", "enter", "d")
    assert there.message == "a\nb\nc\nd"
    await until(lambda: there.screen.composer.size.height == 4, "four rows")
    there.screen.composer.draft.write("a\n" * 30)
    await until(lambda: there.screen.composer.size.height == 12, "half of 24 rows")
    there.screen.composer.draft.write("  ")
    await there.press("enter")
    await until(lambda: there.screen.frame.notice.hint, "a hint")
    assert there.message == "  "
    there.screen.composer.draft.write("one")
    await in_kernel(here, "one", is_draft=True)
    async with opened(here) as other:
        await other.type("two")
        await in_kernel(here, "two", is_draft=True)
        assert (there.message, other.message) == ("one", "two")


async def test_message_on_its_way_is_a_dim_cell_at_the_tail_until_it_arrives_or_is_refused(
    here: World,
) -> None:
    async with typed(here) as (proxy, there):
        message = str(there.screen.composer.draft.block)
        await here.cell("filler\n\n" * 30 + "the last of it")
        await there.sees("the last of it")
        proxy.stop()
        await there.press("enter")
        assert there.message == ""
        await there.sees("│ hello")
        width = there.app.size.width - 1  # without the scroll bar
        last = [line[:width].rstrip() for line in there.lines if "│" in line][-1]
        assert last.startswith(" │ hello") and last.endswith("sending")
        await there.press("pageup", "pageup", "ctrl+end")
        assert there.shows("sending")
        await there.press("escape")
        await until(lambda: there.screen.cells.focused_cell == message, "the message is chosen")
        assert "on its way" in (there.screen.source.edit_denied_reason(message) or "")
        await until(lambda: there.screen.frame.notice.hint == SLOW, "told")
        await there.sees("not answering")
        proxy.go_on()
        await in_kernel(here, "hello", is_draft=False)
        await until(lambda: not there.shows("sending"), "it has arrived")
        assert sum("hello" in line for line in there.lines) == 1
        await until(lambda: not there.shows("not answering"), "answered")
        await there.press("i")
        await there.type("hello again")
        await in_kernel(here, "hello again", is_draft=True)
        proxy.stop()
        await there.press("enter")
        await there.sees("sending")
        await proxy.close()
        await until(lambda: there.message == "hello again", "it is back in the composer")
        await until(lambda: not there.shows("│ hello again"), "it is no cell")


async def test_a_kernel_that_leaves_edits_unanswered_is_named_with_their_number(
    here: World,
) -> None:
    async with typed(here, "he", size=(120, 24)) as (proxy, there):
        await until(lambda: not there.app.session.status.unsaved, "saved")
        proxy.stop()
        begun = time.monotonic()
        await there.type("llo")
        await there.sees("not answering · 3 unsaved")
        assert time.monotonic() - begun >= SILENT_SECONDS
        proxy.go_on()
        await until(lambda: not there.shows("not answering"), "answered")
        await in_kernel(here, "hello", is_draft=True)


async def test_a_message_with_a_rejected_edit_is_in_the_composer_and_can_be_sent(
    here: World, there: Opened
) -> None:
    cell = await here.cell("some text")
    await there.sees("some text")
    await there.type("hel")
    await in_kernel(here, "hel", is_draft=True)
    document = there.app.session.document
    with document.transaction(ORIGIN):
        document.set_fields(cell, status="error")
        there.screen.composer.draft.local.append(LOCAL_BLOCK, "lo")
    await there.press("enter")
    await until(lambda: there.app.session.document is not document, "another document")
    await there.live()
    await until(lambda: there.message == "hello", "the message is there")
    await there.press("enter")
    await in_kernel(here, "hello", is_draft=False)
    document = (await here.context()).document
    drafts = filter(lambda one: document.header(one).is_draft, document.block_ids())
    assert not any(map(document.text, drafts))
