"""Actions in a scene before its picture is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from textual.strip import Strip
from textual.widgets import Input

from antiphon.actions import Mode
from antiphon.screens.questions import READ_SECONDS
from antiphon.textual_patches.screens import terminal_rows
from antiphon.widgets.sidebar import WIDE
from antiphon.widgets.status import HintBar
from antiphon_kernel.contexts import Context
from antiphon_kernel.document.document import Document
from antiphon_kernel.providers import End, recording
from antiphon_kernel.providers.events import ThinkingDelta, ToolCallEvent
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.yjs.id_set import decode_state_vector
from tests.app.opened import Opened
from tests.screenshots.scene import GUESTS_PLACE, Scene
from tests.waiting import until

EDIT: Final = {
    "op": "replace",
    "start_line": 0,
    "end_line": 1,
    "expected_text": "I look first.",
    "content": "I look first, then I ask.",
}

CODE: Final = Path(recording.__file__).with_name("recordings") / "demo" / "choirs.py.txt"


async def streaming(scene: Scene, there: Opened) -> None:
    """Aria is in the middle of the second section; the guest's cursor is in the first."""
    guest = scene.kernel.open_session(await scene.kernel.principal("guest"), "test")
    await scene.write_until("Nothing does.")
    await passes(scene, there, 10)
    await scene.write_until("somebody types at")
    await passes(scene, there, 1)
    await scene.write_until("behind this letter")
    scene.show(guest, scene.answer, scene.text.index(GUESTS_PLACE), Activity.IDLE)
    await until(lambda: len(there.app.session.presence()) == 2, "the guest")
    await settled(scene, there)


async def editing(scene: Scene, there: Opened) -> None:
    """You are correcting aria's text while she writes on."""
    await streaming(scene, there)
    area = there.screen.area
    area.edit(scene.answer, scene.text.index("irs that answer"))
    await until(lambda: area.editor is not None and area.editor.has_focus, "the editor")
    await there.press("o")
    await scene.write_until('become of it"')
    await settled(scene, there)


def clocks(document: Document) -> dict[int, int]:
    """Return the state vector, whose bytes depend on the order in which the clients came."""
    return decode_state_vector(document.state_vector())


async def passes(
    scene: Scene, there: Opened, seconds: float, context: Context | None = None
) -> None:
    """Let time go by for an app that shows all that was written, in the scene's context or one."""
    theirs, ours = (context or scene.context).document, there.app.session.document
    await until(lambda: clocks(ours) == clocks(theirs), "the same text")
    scene.clock.seconds += seconds
    there.screen.source.fade()


async def navigating(scene: Scene, there: Opened) -> None:
    """You are at the first cell, in NAVIGATE."""
    await streaming(scene, there)
    await there.press("up", "g")
    await settled(scene, there)


async def above(scene: Scene, there: Opened) -> None:
    """You have mended the first sentence, while aria writes far below."""
    await editing(scene, there)
    await scene.write_until("Your comma and my paragraph are both in")
    await passes(scene, there, 10)
    await scene.write_until("whichever came first")
    await settled(scene, there)


async def beside(scene: Scene, there: Opened) -> None:
    """You type in a file while aria writes in the conversation beside it, if there is room."""
    await streaming(scene, there)
    await passes(scene, there, 10)
    (scene.kernel.project / CODE.stem).write_bytes(CODE.read_bytes())
    there.app.context.open_file(CODE.stem, 12)
    await until(lambda: there.screen is there.app.screen and there.screen.source.is_file, "it")
    await there.live()
    await until(lambda: there.screen.view.is_restored, "its line")
    await there.press("enter", mode=Mode.EDIT)
    await there.press("end")
    await there.type("  # or more than two?")
    await there.app.session.replica.saved()
    there.screen.source.fade()
    scope = there.screen.controllers.scope
    await until(lambda: scope.file is not None and not scope.file.is_dirty, "it is saved")
    for page in there.app.context.pages:
        await page.screen.contexts.fetch_files()
    await there.press("escape", mode=Mode.NAVIGATE)
    await there.press("enter", mode=Mode.EDIT)
    await still(there)


async def blaming(scene: Scene, there: Opened) -> None:
    """You have mended a word and look at who wrote what."""
    await editing(scene, there)
    await there.press("end")
    await there.type(" So do we, letter by letter.")
    await there.press("escape")
    await there.mode(Mode.NAVIGATE)
    await there.press("b")
    await until(
        lambda: any(one.text.startswith("yo") for one in terminal_rows(there.app)), "authors"
    )
    await settled(scene, there)


async def scrubbing(scene: Scene, there: Opened) -> None:
    """You go back through the history of the cell."""
    await editing(scene, there)
    await there.press("escape")
    await there.mode(Mode.NAVIGATE)
    await there.press("h")
    await there.sees(" of ")
    await pressing("An antiphon is a chant", "left")(scene, there)


async def finding(scene: Scene, there: Opened) -> None:
    """You look for a word."""
    await navigating(scene, there)
    await there.press("slash")
    await there.mode(Mode.FIND)
    await there.press(*"type")
    await there.sees("1 of")
    await settled(scene, there)


async def managing(scene: Scene, there: Opened) -> None:
    """You look at who is here, and what one can do with them."""
    await streaming(scene, there)
    await pressing("guest", "f5")(scene, there)


async def removing(scene: Scene, there: Opened) -> None:
    """You are asked whether the guest shall go."""
    await managing(scene, there)
    await pressing("End every connection of guest", "G", "x")(scene, there)


async def choosing_action(scene: Scene, there: Opened) -> None:
    """You look for what can be done, over a text that is being written."""
    await streaming(scene, there)
    await pressing("Search", "ctrl+p")(scene, there)
    await pressing("History of the page", *"hist")(scene, there)


async def choosing_context(scene: Scene, there: Opened) -> None:
    """You look at the contexts: one beside this one, and a fork of it with a fork of its own."""
    await scene.write_until("Nothing does.")
    await scene.call(scene.you, "context.create", label="notes")
    for label, source in (("try-2", "default"), ("try-2-again", "try-2")):
        await scene.call(scene.you, "context.fork", context=source, label=label)
        text = {"kind": "text", "content": f"Another verse for **{label}**."}
        await scene.call(scene.you, "block.create", context=label, **text)
    await settled(scene, there)
    await there.screen.contexts.fetch()  # what is here is seen
    await pressing("verse for try-2-again", "f4")(scene, there)


async def choosing_file(scene: Scene, there: Opened) -> None:
    """You look for a file of the project."""
    for name in ("README.md", "choir.md", "verses/first.md", "verses/second.md"):
        path = scene.kernel.project / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    await pressing("verses/second.md", "f6", *"verse")(scene, there)


def pressing(sees: str, *keys: str) -> Callable[[Scene, Opened], Awaitable[None]]:
    """Return a play in which some keys are pressed, after which one sees these words."""

    async def play(scene: Scene, there: Opened) -> None:
        await there.press(*keys)
        await there.sees(sees)
        await still(there)

    return play


async def settled(scene: Scene, there: Opened) -> None:
    """Wait until the app shows all that the kernel has."""
    theirs, ours = scene.context.document, there.app.session.document
    await until(lambda: clocks(ours) == clocks(theirs), "the same text")
    await there.app.session.replica.saved()
    await cursors_shown(scene.context, there)
    if there.app.size.width >= WIDE:
        await until(
            lambda: any("▸ default" in row.text for row in terminal_rows(there.app)), "contexts"
        )
    # A hint goes away after some seconds of a clock that is nobody's.
    there.screen.query_one(HintBar).clear_hint()
    # The frame of a streamed text may be due later.
    cells = there.screen.cells
    cells.draw()
    await until(lambda: cells.mapping is None, "the scroll bar")
    await still(there)


async def still(there: Opened) -> None:
    """Wait until nothing changes any more."""
    before, now = list[Strip](), terminal_rows(there.app)
    while before != now:
        await there.pilot.pause()
        before, now = now, terminal_rows(there.app)


async def cursors_shown(context: Context, there: Opened) -> None:
    """Wait until models' cursors, which the kernel moves now and then, are where they will stay."""
    await until(lambda: at_the_end(context), "the cursors of models")
    await until(lambda: knows_everybody(context, there), "the same cursors")


def at_the_end(context: Context) -> bool:
    """The cursors of models are behind what they have written."""
    return all(
        state.block is None or state.cursor == len(context.document.text(state.block))
        for state in context.presence.states().values()
        if state.activity is Activity.STREAMING
    )


def knows_everybody(context: Context, there: Opened) -> bool:
    """The app has the cursors of everybody else as the kernel has them."""
    own, states = there.app.session.document.client_id, context.presence.states()
    others = {client: state for client, state in states.items() if client != own}
    return there.app.session.presence() == others


async def asking(scene: Scene, there: Opened) -> None:
    """Of a model's calls one has run, one is denied, and one, which changes a text, waits."""
    bela, drafts = scene.models["bela"], scene.kernel.project / "drafts"
    drafts.mkdir()
    for name in ("answer.md", "verse.md"):
        (drafts / name).touch()
    # The message that every scene begins with.
    await until(lambda: bela.prompts, "bela is asked")
    bela.end()
    await there.send("Tidy up, please.")
    bela.say(ThinkingDelta("What is there that nobody needs?\nLook before you throw away.\n"))
    bela.write("I look first.")
    bela.run("ls -1 drafts")
    await decide(scene, there, "o")
    bela.write("Nobody has read them for a year: they can go.")
    bela.run("rm -rf drafts")
    await decide(scene, there, "n")
    # The footer names Enter as well: what is typed before the page is there goes to the cell.
    await until(lambda: isinstance(there.app.focused, Input), "the reason is asked for")
    await there.send("We sing them tomorrow.")
    bela.write("They stay. I only want to say above what I do.")
    edit = {"block_id": "tidy.bela.2", "operations": [EDIT]}
    bela.say(ToolCallEvent("call-3", "block_edit", edit))
    bela.say(End("tool_use"))
    await decide(scene, there, None)
    tidy = await scene.kernel.context("tidy")
    await cursors_shown(tidy, there)
    await passes(scene, there, 10, tidy)
    await until(lambda: there.screen.cells.mapping is None, "the scroll bar")
    await still(there)


async def decide(scene: Scene, there: Opened, key: str | None) -> None:
    """Choose the call that waits, if the last decision has not led there, and press a key."""
    await there.sees("Run this with your rights?")
    if there.screen.mode is Mode.WRITE:
        await there.press("escape")
    await until(lambda: there.screen.situation.asks, "the call is chosen")
    if key is not None:
        await there.pilot.pause()
        scene.clock.seconds += READ_SECONDS
        await there.press(key)
    if key == "o":
        # Until then the next call's key would decide about this one.
        questions = there.screen.controllers.questions
        await until(lambda: questions.first is None, "it is decided")
