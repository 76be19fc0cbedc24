"""The outline beside a wide page: what it lists, where it leads, and what it costs."""

from __future__ import annotations

import pytest

from antiphon.widgets.outline import Outline
from antiphon_kernel.types.records import BlockHeader
from tests.app.opened import Opened, World, opened
from tests.bench.filled import Filled
from tests.waiting import until

WIDE = (160, 45)
ANSWER = "# Begin\n\n{0}\n\n## Further\n\n{0}\n\n# End\n\nThe end."
FILLER = "\n\n".join(["Some words."] * 30)


async def ask(here: World, text: str) -> str:
    new = {"role": "user", "kind": "text", "status": "done", "content": text}
    created = await here.call("block.create", **new)
    return str(created["block_id"])


def outline_of(there: Opened) -> Outline:
    return there.screen.query_one(Outline)


def rows_of(there: Opened) -> list[str]:
    outline = outline_of(there)
    return [outline.render_line(y).text.strip() for y in range(outline.size.height)]


async def lists(there: Opened, title: str) -> None:
    await until(
        lambda: any(title in row for row in rows_of(there)),
        lambda: f"{title!r} in\n" + "\n".join(rows_of(there)),
    )


async def test_outline_lists_prompts_and_headings_marks_the_one_in_view_and_goes_to_one_by_a_click(
    here: World,
) -> None:
    await ask(here, "What **is** `here`?\nTell me.")
    block = await here.cell(ANSWER.format(FILLER))
    async with opened(here, size=WIDE) as there:
        await lists(there, "┃   End")
        rows = rows_of(there)
        assert rows[:3] == ["outline", "What is here?", "Begin"]
        assert rows[3] == "Further"
        y = rows_of(there).index("Further")
        await there.pilot.click(Outline, offset=(8, y))
        cells = there.screen.cells
        offset = there.screen.source.text(block).index("## Further")
        await until(lambda: cells.shown.is_shown(block, offset), "the place")
        assert cells.viewport.row_of(block, cells.shown.line_of(block, offset)) == 1
        await until(lambda: "┃     Further" in rows_of(there), "marked")


async def test_prompt_of_an_answer_is_shown_in_an_outline_that_is_put_away_and_back_with_room(
    here: World,
) -> None:
    async with opened(here, size=WIDE) as there:
        await there.send("What is **here**?")
        here.aria.write("An answer.\n\n" + FILLER * 3)
        await lists(there, "answers you")
        assert rows_of(there)[-4] == "What is here?"
        here.aria.end()
        there.screen.call_action("outline")
        await until(lambda: not outline_of(there).display, "put away")
        there.screen.call_action("outline")
        await lists(there, "What is here?")
        await there.pilot.resize_terminal(159, 40)
        await until(lambda: not outline_of(there).display, "no room")
        there.screen.call_action("outline")
        await there.sees("needs a terminal of 160 columns")


async def test_update_visits_cells_near_the_view(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 600
    await Filled(here.kernel, await here.context()).add_blocks(count - 1, "text")
    block = await here.cell("# Begin\n\nwords", status="running")
    async with opened(here, size=WIDE) as there:
        await lists(there, "Begin")
        await until(lambda: len(there.screen.source.ids()) == count, "the cells")
        source, visited = there.screen.source, list[str]()

        def header(block: str) -> BlockHeader:
            visited.append(block)
            return source.document.header(block)

        with monkeypatch.context() as patch:
            patch.setattr(source, "header", header)
            there.screen.controllers.outline.update()
        assert 0 < len(visited) <= 250
        await here.call("block.append", block_id=block, text=" and more words")
        await there.sees("more words")
        await here.call("block.append", block_id=block, text="\n\n# Next\n")
        await lists(there, "Next")
