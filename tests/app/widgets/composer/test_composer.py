from __future__ import annotations

from pathlib import Path

from antiphon.screens.submitter import SLOW
from antiphon_kernel.client.address import ADDRESS_FILE
from antiphon_kernel.types.enums import Status
from tests.addresses import address_of
from tests.app.opened import World, opened, world
from tests.kernel.served import CuttableProxy
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


async def test_others_see_a_message_while_it_is_typed(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here, as_name="guest") as there:
        await there.live()
        await there.type("hello")
        await kernel_has_draft(here, "hello")
        async with opened(here) as mine:
            await mine.sees("guest › hello")
            await there.press("ctrl+u")
            await until(lambda: not mine.shows("guest ›"), "the line has gone")


async def test_enter_sends_and_a_turn_begins(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("What is this?")
        await there.press("enter")
        assert there.message == ""
        await sent(here, "What is this?")
        await until(lambda: here.aria.prompts == ["What is this?"], "the model is asked")
        await there.sees("What is this?")
        here.aria.write("An antiphon.")
        await there.sees("An antiphon.")
        here.aria.end()


async def test_typing_goes_on_while_a_message_is_being_sent(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.pilot.press(*"one", "enter", *"two", "enter", *"three")
        await sent(here, "one")
        await sent(here, "two")
        assert there.message == "three"
        await kernel_has_draft(here, "three")


async def test_an_empty_message_cannot_be_sent(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("  ")
        await there.press("enter")
        await until(lambda: there.screen.hint_shown, "a hint")
        assert there.message == "  "


async def test_there_are_three_ways_to_a_new_line(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.press("a", "ctrl+j", "b", "shift+enter", "c", "backslash", "enter", "d")
        assert there.message == "a\nb\nc\nd"
        await until(lambda: there.screen.composer.size.height == 4, "four rows")


async def test_the_composer_grows_to_half_the_screen_and_then_scrolls(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        there.screen.composer.draft.write("a\n" * 30)
        await until(lambda: there.screen.composer.size.height == 12, "half of 24 rows")


async def test_a_command_runs_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "verse.md").write_text("la\n")
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("!cat verse.md")
        await there.press("enter")
        await there.sees("$ cat verse.md")
        await there.sees("done · 0")
        assert there.message == ""
        assert await draft_in_kernel(here) == []


async def test_a_command_that_is_not_allowed_comes_back_with_the_reason(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here, as_name="guest") as there:
        await there.live()
        await there.type("!ls")
        await there.press("enter")
        await until(lambda: "owner" in (there.screen.hint_shown or ""), "the reason")
        assert there.message == "!ls"


async def test_a_draft_is_there_again_after_quitting(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        async with opened(here) as there:
            await there.live()
            await there.type("half a sen")
            await kernel_has_draft(here, "half a sen")
            await there.press("ctrl+q")
        async with opened(here) as again:
            await again.live()
            await until(lambda: again.message == "half a sen", "the draft")
            await again.press("end", *"tence")
            await kernel_has_draft(here, "half a sentence")
            assert await draft_in_kernel(here) == ["half a sentence"]


async def test_two_windows_of_one_person_have_drafts_of_their_own(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as one:
        await one.live()
        await one.type("one")
        await kernel_has_draft(here, "one")
        async with opened(here) as two:
            await two.live()
            await two.type("two")
            await kernel_has_draft(here, "two")
            assert (one.message, two.message) == ("one", "two")


async def test_ctrl_z_takes_back_what_was_typed(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here) as there:
        await there.live()
        await there.type("mistake")
        await kernel_has_draft(here, "mistake")
        await there.press("ctrl+z")
        await until(lambda: there.message == "", "it is taken back")
        await there.press("ctrl+y")
        await until(lambda: there.message == "mistake", "it is there again")


async def test_a_message_written_before_the_kernel_answers_is_sent_then(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.close_doors()
        async with opened(here) as there:
            await there.type("early")
            await there.press("enter")
            await until(lambda: "as soon as" in (there.screen.hint_shown or ""), "the hint")
            assert there.message == "early"
            await here.open_doors()
            await sent(here, "early")
            await until(lambda: there.message == "", "an empty composer")


async def test_a_kernel_that_does_not_answer_is_named_while_a_message_is_on_its_way(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        assert here.doors is not None
        proxy = CuttableProxy(here.doors.port)
        await proxy.start()
        through = {"socket": None, "http": f"http://127.0.0.1:{proxy.port}"}
        address = address_of(here.kernel, here.doors).model_copy(update=through)
        (here.data / ADDRESS_FILE).write_text(address.model_dump_json())
        async with opened(here) as there:
            await there.live()
            await there.type("hello")
            await kernel_has_draft(here, "hello")
            proxy.stop()
            await there.press("enter")
            await until(lambda: there.screen.hint_shown == SLOW, "told")
            assert there.message == ""
            proxy.go_on()
            await sent(here, "hello")
        await proxy.close()
