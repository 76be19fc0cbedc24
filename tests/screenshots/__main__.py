"""`make screenshots`: writes screenshots/*.svg.

python -m tests.screenshots [FOLDER]
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from antiphon.app import AntiphonApp
from antiphon_kernel.types.enums import Activity
from tests.screenshots.scene import GUESTS_PLACE, Scene, open_scene

FOLDER = Path(__file__).parents[2] / "screenshots"

Play = Callable[[Scene, AntiphonApp, Pilot[None]], Awaitable[None]]


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that is on its way."""
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never: {what}")
        await asyncio.sleep(0.01)


async def streaming(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """Aria is in the middle of the second section; the guest's cursor is in the first."""
    guest = scene.kernel.open_session(await scene.kernel.principal("guest"), "test")
    await scene.write_until("behind this letter")
    scene.show(guest, scene.answer, scene.text.index(GUESTS_PLACE), Activity.IDLE)
    await until(lambda: len(app.session.presence()) == 2, "the guest")
    await settled(scene, app, pilot)


async def editing(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """You are typing in aria's text."""
    await streaming(scene, app, pilot)
    await pilot.press("up", "enter")
    area = app.document_screen.area
    await until(lambda: area.editor is not None and area.editor.has_focus, "the editor")
    await pilot.press(*["down"] * 2, "end", *"  choirs,")
    await settled(scene, app, pilot)


async def settled(scene: Scene, app: AntiphonApp, pilot: Pilot[None]) -> None:
    """The app shows all that the kernel has."""
    theirs, ours = scene.context.document, app.session.document
    await until(lambda: ours.state_vector() == theirs.state_vector(), "the same text")
    await app.session.replica.saved()
    await pilot.pause(0.2)


async def take(
    name: str, size: tuple[int, int], play: Play, folder: Path, theme: str | None = None
) -> None:
    """One picture."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_scene(Path(scratch)) as scene:
            app = scene.app(Path(scratch), theme=theme)
            async with app.run_test(size=size) as pilot:
                await until(lambda: app.session.is_live, "the connection")
                await play(scene, app, pilot)
                (folder / f"{name}.svg").write_text(app.export_screenshot(title="antiphon"))
                await app.session.close()


async def take_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    await take("streaming-80x24", (80, 24), streaming, folder)
    await take("sidebar-120x40", (120, 40), streaming, folder)
    await take("editing-80x24", (80, 24), editing, folder)
    await take("light-120x40", (120, 40), editing, folder, theme="antiphon-light")


def main() -> None:
    for name in [one for one in os.environ if one.startswith("TEXTUAL_") or one == "NO_COLOR"]:
        del os.environ[name]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    asyncio.run(take_all(folder))


if __name__ == "__main__":
    main()
