"""The line at the summary from which models read."""

from __future__ import annotations

from typing import Any

from antiphon.widgets.block_list.cell_model import CellModel
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import Role, Status
from tests.app.widgets.block_list.sample import AMY, Sample, SampleApp, on_screen
from tests.waiting import until

LINE = "── models read from here ──"


def add_summary(sample: Sample, text: str = "So far", **fields: Any) -> str:
    """Add a summary as context.compact writes one."""
    block = sample.add(text, author=AMY, metadata={"type": SUMMARY_TYPE}, **fields)
    sample.peer.set_fields(block, role=Role.SYSTEM)
    return block


def shown(app: SampleApp) -> str:
    return "\n".join(app.screen_text())


def read_from(source: CellModel) -> list[str]:
    return [block for block in source.ids() if source.view(block).is_read_from]


async def test_line_is_drawn_above_the_latest_summary(sample: Sample) -> None:
    first = sample.add("An old answer.")
    async with on_screen(sample) as (app, _):
        assert LINE not in shown(app)
        summary = add_summary(sample, before=None)
        sample.add("A new answer.")
        await until(lambda: LINE in shown(app), "the line is there")
        rows = shown(app)
        assert rows.index("An old answer.") < rows.index(LINE) < rows.index("So far")
        assert rows.index("So far") < rows.index("A new answer.")
        assert read_from(app.source) == [summary] != [first]


async def test_line_goes_when_the_summary_is_undone_elsewhere_and_comes_back(
    sample: Sample,
) -> None:
    older = add_summary(sample, "Older")
    newer = add_summary(sample, "Newer")
    async with on_screen(sample) as (app, _):
        await until(lambda: read_from(app.source) == [newer], "the newer one")
        assert shown(app).count(LINE) == 1
        sample.peer.splice(newer, 0, 5, "")
        await until(lambda: read_from(app.source) == [older], "the newer one is undone")
        sample.peer.append(newer, "Newer")
        await until(lambda: read_from(app.source) == [newer], "it is done again")
        sample.peer.set_fields(newer, excluded=True)
        sample.peer.set_fields(older, excluded=True)
        await until(lambda: LINE not in shown(app), "both are left out")


async def test_line_stays_above_a_summary_that_is_folded(sample: Sample) -> None:
    add_summary(sample, "First line\n\nSecond line", collapsed=True)
    async with on_screen(sample) as (app, _):
        await until(lambda: LINE in shown(app), "the line is there")
        assert "Second line" not in shown(app)


def test_summary_of_a_long_document_is_found_bit_by_bit(sample: Sample) -> None:
    summary = add_summary(sample)
    sample.add_turns(60)
    source = CellModel(sample.here, me=AMY)
    while source.preload(10):
        pass
    assert read_from(source) == [summary]


def test_summary_that_is_not_finished_has_no_line(sample: Sample) -> None:
    block = add_summary(sample, status=Status.RUNNING)
    source = CellModel(sample.here, me=AMY)
    source.preload()
    assert read_from(source) == []
    sample.peer.set_fields(block, status=Status.DONE)
    assert read_from(source) == [block]
