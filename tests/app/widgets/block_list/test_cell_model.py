"""Blocks as cells: the summary from which models read, and contents with a schema."""

from __future__ import annotations

from typing import Any

from antiphon.widgets.block_list import CellChange, CellModel
from antiphon_kernel.document.content_writes import plan_push, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    ListSchema,
    Section,
    TextSchema,
)
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader
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


CONTEXT = ContextId("a" * 32)
BLOCK = f"{CONTEXT}.{'1' * 32}.1"
SCHEMA = CompositeSchema(
    sections=(
        Section(name="notes", content=TextSchema()),
        Section(name="steps", content=ListSchema(), read_only=True),
    )
)


def test_cell_shows_the_content_as_it_is_now() -> None:
    document = Document.create(77, context=CONTEXT, epoch="b" * 32, label="default")
    header = BlockHeader(BLOCK, BlockKind.TEXT, Role.MODEL, Status.DONE, "a0", "t", "1" * 32)
    document.create_block(header, schema=SCHEMA)
    source = CellModel(document)
    assert source.view(BLOCK).text == "## notes\n\n## steps [read-only]\n"
    assert source.view(BLOCK).author == "1" * 8, "nobody has said who that is"
    changes: list[CellChange] = []
    source.changed.listen(changes.append)
    document.append(BLOCK, "remember", "notes")
    assert source.view(BLOCK).text == "## notes\nremember\n\n## steps [read-only]\n"
    with document.transaction("push"):
        plan_push(document, BLOCK, "steps", "go").apply()
    assert source.view(BLOCK).text.endswith("## steps [read-only]\n- go\n")
    with document.transaction("set"):
        for write in plan_set(document, BLOCK, "notes", "forget"):
            write.apply()
    assert "forget" in source.view(BLOCK).text
    assert [change.changed for change in changes] == [frozenset({BLOCK})] * 3
    assert [text for change in changes for text in change.texts] == []
    assert "schema" in (source.edit_denied_reason(BLOCK) or "")


def test_persons_block_with_a_schema_is_no_draft() -> None:
    document = Document.create(77, context=CONTEXT, epoch="b" * 32, label="default")
    header = BlockHeader(BLOCK, BlockKind.TEXT, Role.USER, Status.RUNNING, "a0", "t", "1" * 32)
    document.create_block(header, schema=SCHEMA)
    source = CellModel(document)
    assert not source.is_hidden(BLOCK)
    assert source.drafts() == []
