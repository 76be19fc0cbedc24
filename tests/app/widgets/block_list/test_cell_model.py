"""Blocks as cells: the summary from which models read, and contents with a schema."""

from __future__ import annotations

from typing import Any

from antiphon.widgets.block_list import CellChange, CellModel
from antiphon_kernel.document.content_writes import plan_insert, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    ListSchema,
    Section,
    TextSchema,
)
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.app.widgets.block_list.sample import AMY, CONTEXT, Sample


def add_summary(sample: Sample, text: str = "So far", **fields: Any) -> str:
    """Add a summary as context.compact writes one."""
    block = sample.add(text, author=AMY, metadata={"type": SUMMARY_TYPE}, **fields)
    sample.peer.set_fields(block, role=Role.SYSTEM)
    return block


def read_from(source: CellModel) -> list[str]:
    return [block for block in source.ids() if source.view(block).is_read_from]


def test_models_read_from_the_newest_summary_that_is_not_undone_elsewhere(sample: Sample) -> None:
    older = add_summary(sample, "Older")
    newer = add_summary(sample, "Newer")
    source = CellModel(sample.here, me=AMY)
    source.preload()
    assert read_from(source) == [newer]
    sample.peer.splice(newer, 0, 5, "")
    assert read_from(source) == [older]
    sample.peer.append(newer, "Newer")
    assert read_from(source) == [newer]
    sample.peer.set_fields(newer, excluded=True)
    sample.peer.set_fields(older, excluded=True)
    assert read_from(source) == []


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


BLOCK = f"{CONTEXT}.{'1' * 32}.1"
SCHEMA = CompositeSchema(
    sections=(
        Section(name="notes", content=TextSchema()),
        Section(name="steps", content=ListSchema(), read_only=True),
    )
)


def structured(role: Role, status: Status) -> tuple[Document, CellModel]:
    document = Document.create(77, context=CONTEXT, epoch="b" * 32, label="default")
    header = BlockHeader(BLOCK, BlockKind.TEXT, role, status, "a0", "t", "1" * 32)
    document.create_block(header, schema=SCHEMA)
    return document, CellModel(document)


def test_cell_shows_the_content_as_it_is_now() -> None:
    document, source = structured(Role.MODEL, Status.DONE)
    assert source.view(BLOCK).text == "## notes\n\n## steps [read-only]\n"
    assert source.view(BLOCK).author == "1" * 8, "nobody has said who that is"
    changes: list[CellChange] = []
    source.changed.listen(changes.append)
    document.append(BLOCK, "remember", "notes")
    assert source.view(BLOCK).text == "## notes\nremember\n\n## steps [read-only]\n"
    with document.transaction("push"):
        plan_insert(document, BLOCK, "steps", None, "go").apply()
    assert source.view(BLOCK).text.endswith("## steps [read-only]\n- go\n")
    with document.transaction("set"):
        for write in plan_set(document, BLOCK, "notes", "forget"):
            write.apply()
    assert "forget" in source.view(BLOCK).text
    assert [change.changed for change in changes] == [frozenset({BLOCK})] * 3
    assert [text for change in changes for text in change.texts] == []
    assert "schema" in (source.edit_denied_reason(BLOCK) or "")


def test_persons_block_with_a_schema_is_no_draft() -> None:
    _, source = structured(Role.USER, Status.RUNNING)
    assert not source.is_hidden(BLOCK)
    assert source.drafts() == []
