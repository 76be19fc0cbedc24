"""What happens in a scene before its picture is taken."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from antiphon.app import AntiphonApp
from antiphon.widgets.sidebar import WIDE
from antiphon_kernel.types.enums import Activity
from tests.app.rows import terminal_rows
from tests.screenshots.scene import GUESTS_PLACE, Scene, open_scene
from tests.waiting import until

Play = Callable[[Scene, AntiphonApp, Pilot[None]], Awaitable[None]]


async def streaming(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """Aria is in the middle of the second section; the guest's cursor is in the first."""
    guest = scene.kernel.open_session(await scene.kernel.principal("guest"), "test")
    await scene.write_until("Nothing does.")
    await passes(scene, app, 10)
    await scene.write_until("somebody types at")
    await passes(scene, app, 1)
    await scene.write_until("behind this letter")
    scene.show(guest, scene.answer, scene.text.index(GUESTS_PLACE), Activity.IDLE)
    await until(lambda: len(app.session.presence()) == 2, "the guest")
    await settled(scene, app, pilot)


async def editing(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """You are correcting aria's text while she writes on."""
    await streaming(scene, app, pilot)
    area = app.document_screen.area
    area.edit(scene.answer, scene.text.index("airs that answer"))
    await until(lambda: area.editor is not None and area.editor.has_focus, "the editor")
    await pilot.press("delete", "o")
    await scene.write_until('become of it"')
    await settled(scene, app, pilot)


async def passes(scene: Scene, app: AntiphonApp, seconds: float) -> None:
    """Let time go by for an app that shows all that was written."""
    theirs, ours = scene.context.document, app.session.document
    await until(lambda: ours.state_vector() == theirs.state_vector(), "the same text")
    scene.clock.seconds += seconds
    app.document_screen.source.fade()


async def navigating(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """You are at the first cell, in NAVIGATE."""
    await streaming(scene, app, pilot)
    await pilot.press("up", "g")
    await settled(scene, app, pilot)


async def settled(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """Wait until the app shows all that the kernel has."""
    theirs, ours = scene.context.document, app.session.document
    await until(lambda: ours.state_vector() == theirs.state_vector(), "the same text")
    await app.session.replica.saved()
    await until(lambda: at_the_end(scene), "aria's cursor, which the kernel moves now and then")
    await until(lambda: knows_everybody(scene, app), "the same cursors")
    if app.size.width >= WIDE:
        await until(lambda: any("▸ default" in row.text for row in terminal_rows(app)), "contexts")
    # The frame of a streamed text may be due later.
    cells = app.document_screen.cells
    cells.draw()
    await until(lambda: cells.is_map_current, "the scroll bar")
    shown, now = "", app.export_screenshot()
    while shown != now:
        await pilot.pause()
        shown, now = now, app.export_screenshot()


def at_the_end(scene: Scene) -> bool:
    """Aria's cursor is behind what she has written."""
    return all(
        state.cursor == len(scene.context.document.text(scene.answer))
        for state in scene.context.presence.states().values()
        if state.activity is Activity.STREAMING
    )


def knows_everybody(scene: Scene, app: AntiphonApp) -> bool:
    """The app has the cursors of everybody else as the kernel has them."""
    own, states = app.session.document.client_id, scene.context.presence.states()
    others = {client: state for client, state in states.items() if client != own}
    return app.session.presence() == others


async def picture(size: tuple[int, int], play: Play, *, theme: str | None = None) -> str:
    """The SVG of the app in a terminal of this size, after `play`."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_scene(Path(scratch)) as scene:
            app = scene.app(Path(scratch), theme=theme)
            async with app.run_test(size=size) as pilot:
                await until(lambda: app.session.is_live, "the connection")
                await play(scene, app, pilot)
                taken = app.export_screenshot(title="antiphon", simplify=True)
                await app.session.close()
    return taken
