from __future__ import annotations

import asyncio
from pathlib import Path

from antiphon.modes import Mode
from tests.app.opened import opened, world
from tests.waiting import until


async def test_the_header_says_how_the_kernel_is(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.close_doors()
        async with opened(here) as there:
            await there.sees("offline")
            await here.open_doors()
            await there.sees("live")
            await there.sees("● you")


async def test_editing_goes_on_without_a_connection_and_arrives_later(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        block = await here.cell("some text")
        async with opened(here) as there:
            await there.live()
            await there.sees("some text")
            await here.close_doors()
            await there.sees("offline")
            await there.press("up", "enter")
            await there.mode(Mode.EDIT)
            await there.type("more and ")
            await there.sees("more and some text")
            await there.sees("unsaved")
            await there.press("ctrl+z")
            await until(lambda: "Offline" in (there.screen.hint_shown or ""), "a hint")
            await here.open_doors()
            document = (await here.context()).document
            await until(lambda: document.text(block) == "more and some text", "it arrives")
            await there.sees("live")


async def test_leaving_with_unsaved_changes_has_to_be_said_twice(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.cell("some text")
        async with opened(here) as there:
            await there.live()
            await there.sees("some text")
            await here.close_doors()
            await there.sees("offline")
            await there.press("up", "enter")
            await there.mode(Mode.EDIT)
            await there.type("x")
            await there.press("ctrl+q")
            await until(lambda: "Ctrl+Q again" in (there.screen.hint_shown or ""), "a warning")
            assert there.app.is_running


async def test_the_app_that_started_the_kernel_starts_it_again(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        loop = asyncio.get_running_loop()
        restarts: list[None] = []

        def restart() -> None:
            restarts.append(None)
            asyncio.run_coroutine_threadsafe(here.open_doors(), loop).result(10)

        async with opened(here, restart=restart) as there:
            await there.live()
            await here.close_doors()
            await there.sees("starting the kernel")
            await until(lambda: there.app.session.is_live, "live again")
            assert len(restarts) == 1


async def test_a_kernel_that_cannot_be_started_again_is_named(tmp_path: Path) -> None:
    from antiphon_kernel.types.errors import AntiphonError, ErrorCode

    def restart() -> None:
        raise AntiphonError(ErrorCode.NO_KERNEL, "The kernel ended a second time.")

    async with world(tmp_path) as here, opened(here, restart=restart) as there:
        await there.live()
        await here.close_doors()
        await there.sees("The kernel ended a second time.")
        await there.sees("offline")
        await there.type("goes on")
        assert there.message == "goes on"


async def test_a_refusal_is_named_with_its_reason(tmp_path: Path) -> None:
    async with world(tmp_path) as here, opened(here, context="nowhere", size=(120, 40)) as there:
        await there.sees("refused: ")
        await there.sees("nowhere")


async def test_a_refused_edit_is_named_and_what_was_typed_beside_it_stays(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        block = await here.cell("some text")
        async with opened(here) as there:
            await there.live()
            await there.sees("some text")
            document = there.app.session.document
            document.set_fields(block, status="error")
            document.splice(block, 0, 0, "more and ")
            await there.sees("refused: permission_denied")
            await there.sees("more and some text")
            await until(lambda: "One edit was refused" in (there.screen.hint_shown or ""), "a hint")
            refused = there.app.session.standing.refused
            assert refused is not None
            assert "status" in refused.file.read_text()
            await there.live()
            await there.press("up", "enter")
            await there.mode(Mode.EDIT)
            await there.type("even ")
            kernels = (await here.context()).document
            await until(lambda: kernels.text(block) == "even more and some text", "typing goes on")
