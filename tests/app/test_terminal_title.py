"""The title of the terminal's window."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from antiphon.terminal_title import MOST_COLUMNS, terminal_title
from antiphon.widgets.status import Participant
from tests.app.opened import Opened, World, opened, world
from tests.waiting import until


def model(name: str, doing: str = "", *, streaming: bool = False) -> Participant:
    return Participant(
        principal=name,
        name=name,
        colour=0,
        is_me=False,
        is_model=True,
        doing=doing,
        streaming=streaming,
        block=None,
        role="",
    )


ASKING = model("aria", "asks", streaming=True)
WRITING = model("bela", "writing", streaming=True)


@pytest.mark.parametrize(
    ("people", "unread", "title"),
    [
        ((), 0, "antiphon: notes"),
        ((model("aria"),), 2, "antiphon: notes · 2 unread elsewhere"),
        ((WRITING,), 0, "◐ antiphon: notes · bela writes"),
        ((WRITING, ASKING), 0, "● antiphon: notes · aria asks"),
        ((WRITING, WRITING), 1, "◐ antiphon: notes · 2 models write · 1 unread elsewhere"),
    ],
    ids=["rest", "unread", "writes", "asks", "several"],
)
def test_title_names_context_and_state(
    people: tuple[Participant, ...], unread: int, title: str
) -> None:
    assert terminal_title("notes", people, unread) == title


def test_title_of_hostile_names_is_one_bounded_row_without_controls() -> None:
    hostile = "a\x1b]0;x\x07\x9c\u202eb\n" * 40
    title = terminal_title(hostile, [model(hostile, "asks")], 10**9)
    assert title.isprintable()
    assert not set(title) & set("\x1b\x07\x9c\u202e\n")
    assert cell_len(title) <= MOST_COLUMNS


async def title_is(there: Opened, title: str) -> None:
    await until(lambda: there.app.title == title, lambda: f"{title!r}, it is {there.app.title!r}")


async def test_title_follows_a_turn(here: World, there: Opened) -> None:
    await title_is(there, "antiphon: default")
    await there.send("hi")
    await title_is(there, "◐ antiphon: default · aria writes")
    here.aria.end()
    await title_is(there, "antiphon: default")


async def test_title_counts_what_is_unread_in_the_context_before(
    here: World, there: Opened
) -> None:
    made = await here.call("context.create", label="notes")
    there.screen.open_context(made["context_id"])
    await title_is(there, "antiphon: notes")
    await there.live()
    await here.cell("news")
    await there.screen.contexts.fetch()
    await title_is(there, "antiphon: notes · 1 unread elsewhere")


async def test_title_says_that_a_model_asks(tmp_path: Path) -> None:
    async with world(tmp_path, asks=True) as here, opened(here) as there:
        await there.send("Touch it.")
        here.aria.run("touch ran")
        await title_is(there, "● antiphon: default · aria asks")
        here.aria.end()
