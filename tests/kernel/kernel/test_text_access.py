"""A tool that is given a section reads and writes that text, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    MapSchema,
    Section,
    TextSchema,
)
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor, BlockHeader
from tests.errors import raises

PATCH = "@@ -1 +1 @@\n-old\n+new\n"


@pytest.fixture
async def block(context: Context, amy: Actor) -> str:
    """A block with the texts notes and fields/title, and source, which is read-only."""
    schema = CompositeSchema(
        sections=(
            Section(name="notes", content=TextSchema()),
            Section(name="source", content=TextSchema(), read_only=True),
            Section(
                name="fields",
                content=MapSchema(fields=(FieldSchema(name="title", field_type=FieldType.TEXT),)),
            ),
        )
    )
    block = str(context.next_block_id(amy.principal.id))
    header = BlockHeader(
        block, BlockKind.TEXT, Role.USER, Status.DONE, "a0", "2026-01-01", amy.principal.id
    )

    def write() -> None:
        context.document.create_block(header, schema=schema)
        for section in ("notes", "source", "fields/title"):
            context.document.append(block, "old\n", section)

    await context.write(amy, "create", write, blocks=()).saved()
    return block


async def call(
    kernel: Kernel, actor: Actor, tool: str, block: str, **params: Any
) -> dict[str, Any]:
    return await kernel.call(actor, tool, {"block_id": block, **params})


@pytest.mark.parametrize("section", ["notes", "fields/title"])
async def test_patch_and_a_search_go_to_the_text_that_is_named(
    kernel: Kernel, amy: Actor, block: str, section: str
) -> None:
    await call(kernel, amy, "block.apply_patch", block, patch=PATCH, section=section)
    document = (await kernel.context()).document
    texts = {one: document.text(block, one) for one in ("notes", "source", "fields/title")}
    assert texts == {one: "new\n" if one == section else "old\n" for one in texts}
    answer = await call(kernel, amy, "block.search", block, query="new", section=section)
    assert [one["line"] for one in answer["matches"]] == [0]
    answer = await call(kernel, amy, "block.search", block, query="new", section="source")
    assert answer["matches"] == []


@pytest.mark.parametrize("section", [None, "fields", "nowhere", "notes/inner", ""])
async def test_text_tool_without_text_section_names_text_sections(
    kernel: Kernel, amy: Actor, block: str, section: str | None
) -> None:
    params = {} if section is None else {"section": section}
    for tool, more in (("block.search", {"query": "x"}), ("block.apply_patch", {"patch": PATCH})):
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            await call(kernel, amy, tool, block, **more, **params)
        assert caught.value.details["allowed"] == ["notes", "source", "fields/title"]


async def test_read_only_section_is_not_patched(kernel: Kernel, amy: Actor, block: str) -> None:
    with raises(ErrorCode.READ_ONLY_SECTION) as caught:
        await call(kernel, amy, "block.apply_patch", block, patch=PATCH, section="source")
    assert caught.value.details["path"] == "source"
    await call(kernel, kernel.system, "block.apply_patch", block, patch=PATCH, section="source")
    assert (await kernel.context()).document.text(block, "source") == "new\n"


async def test_plain_text_has_no_sections(kernel: Kernel, amy: Actor) -> None:
    request = {"role": "user", "kind": "text", "content": "old\n"}
    block = (await kernel.call(amy, "block.create", request))["block_id"]
    with pytest.raises(AntiphonError, match="leave section out"):
        await call(kernel, amy, "block.search", block, query="x", section="notes")
