"""The other contexts of the kernel: listed, opened, and where one was in each."""

from __future__ import annotations

import pytest

from antiphon.actions import Mode
from antiphon.locations import state_folder
from antiphon.options import AppOptions
from antiphon.screens.view_state import ViewState, ViewStateStore
from antiphon.widgets.sidebar import ContextName, context_entries
from tests.app.opened import Opened, World, opened
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("frequent_looks")


async def a_context(here: World, label: str, *contents: str) -> str:
    created = await here.call("context.create", label=label)
    for content in contents:
        new = {"role": "user", "kind": "text", "status": "done", "content": content}
        await here.call("block.create", context=created["context_id"], **new)
    return str(created["context_id"])


async def open_second(there: Opened, label: str) -> None:
    """From the sidebar: the context below the first."""
    await there.press("f2")
    await there.mode(Mode.CONTEXTS)
    await there.sees(label)
    await there.press("down", "enter")
    await until(lambda: there.app.session.document.label == label, label)
    await there.live()


async def back_to_first(there: Opened) -> None:
    await there.press("f2", "up", "enter")
    await until(lambda: there.app.session.document.label == "default", "back")
    await there.live()


async def test_contexts_more_than_rows_show_the_chosen_one_and_the_people(here: World) -> None:
    for number in range(12):
        await here.call("context.create", label=f"number-{number}")
    async with opened(here, size=(80, 14)) as there:
        await there.press("f2")
        await there.sees("number-2")
        assert there.shows("people") and not there.shows("number-11")
        there.burst(*["down"] * 12)
        await there.sees("number-11")
        assert there.shows("people") and not there.shows("number-2 ")
        # One that is made beside the open app is in the palette, too.
        await a_context(here, "later")
        await there.press("ctrl+p")
        await there.type("later")
        await there.sees("Context: later")
        # The project has one file, and no folder to go into.
        await there.press("escape", "escape", "f2", mode=Mode.CONTEXTS)
        await there.press("right")
        await there.sees("kernel.sock")
        await there.press("right", "right")
        await there.hint("This is a file: Enter opens it.")
        await there.press("left", "left", "left")
        await there.hint("The project is closed: → opens it.")


async def test_sidebar_opens_contexts_with_their_drafts_and_names_renamed_and_archived_ones(
    here: World,
) -> None:
    async with opened(here, size=(120, 24)) as there:
        notes = await a_context(here, "notes", "Buy milk")
        await there.type("half a thought")
        await here.call("context.rename", context=notes, label="plans")
        await open_second(there, "plans")
        await there.sees("Buy milk")
        await there.mode(Mode.WRITE)
        assert there.message == ""
        await here.call("context.rename", context=notes, label="dreams")
        await there.sees("dreams")
        await here.call("context.archive", context=notes)
        await there.press("f2")
        await there.sees("dreams · archived")
        await there.press("up", "enter")
        await until(lambda: there.app.session.document.label == "default", "back")
        await there.live()
        await there.sees("▸ default")
        await until(lambda: not there.shows("dreams"), "gone, while it is not open")
        await until(lambda: there.message == "half a thought", "the draft")


async def test_number_of_what_others_wrote_is_there_until_a_visit_which_ends_the_screen_before(
    here: World,
) -> None:
    async with opened(here, size=(120, 24)) as there:
        notes = await a_context(here, "notes", "my own text")
        await there.sees("  notes")
        assert not there.shows("●1")
        ben = here.kernel.open_session(await here.kernel.principal("ben"), "test")
        await there.sees("  notes")
        new = {"role": "user", "kind": "text", "status": "done", "content": "from ben"}
        for _ in range(2):
            await here.kernel.call(ben, "block.create", {"context": notes, **new})
        await until(lambda: any("notes" in row and "●2" in row for row in there.lines), "●2")
        before = there.screen
        await there.press("f5")  # a page that waits for nobody any more
        before.open_context(notes)
        await until(lambda: there.screen.contexts.label == "notes", "the other context")
        await until(lambda: not before.is_attached, "the screen before is gone")
        assert all(work.node is not before for work in there.app.workers)
        await there.live()
        await until(lambda: not there.shows("●2"), "seen")
        await back_to_first(there)
        await there.sees("  notes")
        assert not there.shows("●2")
        await here.kernel.call(ben, "block.create", {"context": notes, **new})
        await there.sees("●1")
    async with opened(here, size=(120, 24)) as there:
        await there.sees("●1")


async def test_view_state_unreadable_is_reported_and_app_opens(here: World) -> None:
    said: list[object] = []

    def stored() -> ViewStateStore:
        return ViewStateStore(state_folder(), AppOptions(data=here.data), said.append)

    stored().write("0" * 32, ViewState())
    [file] = (state_folder() / "places").iterdir()
    for content in ("", '{"places": {', '{"places": {"id": {"version": -1}}}'):
        file.write_text(content)
        assert stored().last_context() is None
    assert len(said) == 3
    async with opened(here) as there:
        await there.sees("Where you are cannot be remembered")


def test_view_state_is_that_of_one_person_where_several_work_on_one_machine(here: World) -> None:
    amy, bo = (
        ViewStateStore(state_folder(), AppOptions(data=here.data, as_name=name), print)
        for name in (None, "bo")
    )
    amy.write("0" * 32, ViewState())
    bo.write("1" * 32, ViewState())
    assert (amy.last_context(), bo.last_context()) == ("0" * 32, "1" * 32)


async def test_view_state_of_a_cell_and_a_context_that_are_gone_is_passed_over(
    here: World,
) -> None:
    await here.cell("the last")
    context = (await here.context()).document.context
    store = ViewStateStore(state_folder(), AppOptions(data=here.data), print)
    store.write(str(context), ViewState(block="gone", line=7, focused="gone"))
    store.write("0" * 32, ViewState())
    async with opened(here) as there:
        await there.sees("the last")
        assert there.app.session.document.context == context
        assert there.screen.area.cells.following


async def test_a_named_context_that_is_missing_ends_the_app_with_the_list(here: World) -> None:
    await a_context(here, "notes")
    async with opened(here, context="nope", live=False) as there:
        await until(lambda: there.app.return_code is not None, "the end")
        assert there.app.return_code == 1
        [message] = there.app._exit_renderables  # noqa: SLF001  printed by `run` only
        assert "nope" in str(message) and "default" in str(message) and "notes" in str(message)


def test_forks_stand_below_their_sources_whatever_is_listed() -> None:
    contexts = [
        ContextName("1", "a"),
        ContextName("2", "b", source="9"),
        *(ContextName(str(n), f"c{n}", source=str(n - 1 if n > 3 else 1)) for n in range(3, 10)),
    ]
    rows = [(one.label, mark) for one, mark in context_entries(contexts)]
    assert rows[:4] == [("a", ""), ("c3", "└ "), ("c4", "  └ "), ("c5", "    └ ")]
    assert rows[-2:] == [("c9", "      └ "), ("b", "      └ ")]
    assert len(rows) == len(contexts)
    assert [mark for _, mark in context_entries(contexts[1:2])] == ["└ "]


@pytest.mark.parametrize(
    ("ahead", "behind", "shown"), [(0, 0, ""), (3, 0, "↑3"), (0, 1, "↓1"), (3, 12, "↑3 ↓12")]
)
def test_fork_says_how_far_it_is_apart(ahead: int, behind: int, shown: str) -> None:
    assert ContextName("1", "a", ahead=ahead, behind=behind).drifted == shown
