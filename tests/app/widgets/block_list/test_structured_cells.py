"""A block with a schema is a cell that shows its content, follows it, and is not typed into."""

from __future__ import annotations

from antiphon.widgets.block_list import CellChange, CellModel
from antiphon_kernel.document.content_writes import plan_push, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    CompositeSchema,
    ListSchema,
    Section,
    TextSchema,
)
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import BlockHeader

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
