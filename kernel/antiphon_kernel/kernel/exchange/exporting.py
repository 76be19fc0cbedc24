"""A context as lines of JSON, to be imported again, or as Markdown, to be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import (
    TEXT,
    Schema,
    each_part,
    encode_schema,
    is_text,
    path_of,
)
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.exchange.records import (
    BlockLine,
    ContextLine,
    Export,
    PrincipalLine,
    RunLine,
    header_fields,
)
from antiphon_kernel.kernel.header_conformity import without_damage
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.records import BlockHeader, Principal


async def export_context(kernel: Kernel, context: Context) -> Export:
    """Everything of a context but what is undone and who did what when.

    Damaged header values are left out, so that what is exported can be imported.

    Raises:
        AntiphonError: storage_failed.
    """
    document = context.document
    version = context.seq
    lines = []
    for block in tuple(document.block_ids()):
        history = await context.history(block)
        # From here to the next await nothing comes between: each block is as of one moment.
        schema = document.schema(block)
        structured: dict[str, Any] = {}
        if schema != TEXT:
            structured["schema"] = json.loads(encode_schema(schema))
            structured["content"] = read_value(document, block)
        lines.append(
            BlockLine(
                id=block,
                version=context.version(block),
                header=header_fields(without_damage(document.header(block), kernel.limits)),
                text=document.text(block),
                authors=[*_authors(history, schema)],
                **structured,
            )
        )
    await context.settled()
    named: set[str] = {line.header["author"] for line in lines}
    named |= {run.principal for line in lines for run in line.authors}
    return Export(
        ContextLine(context_id=context.id, label=context.label, version=version),
        tuple(_principal(kernel.find_principal(one)) for one in sorted(named)),
        tuple(lines),
    )


def _authors(history: BlockHistory, schema: Schema) -> Iterator[RunLine]:
    """The authors of each text in a content, text by text."""
    for names, part in each_part(schema):
        if not is_text(part):
            continue
        section, at = path_of(names), 0
        for run in history.blame(section):
            yield RunLine(
                start=at,
                end=at + run.length,
                principal=run.stamp.principal,
                version=run.stamp.version,
                time=iso_time(run.stamp.time),
                section=section,
            )
            at += run.length


def as_markdown(kernel: Kernel, context: Context) -> str:
    """What a person reads: a heading for each block, its text, code and output fenced."""
    document = context.document
    parts = [f"# {context.label}\n"]
    for block in document.block_ids():
        header = document.header(block)
        text = render(document, block)
        heading = _heading(header, kernel.find_principal(header.author).username)
        parts.append(f"{heading}\n\n{_body(header, text)}")
    return "\n".join(parts)


def _heading(header: BlockHeader, username: str) -> str:
    words = [username]
    if header.kind != BlockKind.TEXT:
        words.append(str(header.kind).replace("_", " "))
    words.append(header.created)
    if header.status != "done":
        words.append(str(header.status))
    return "## " + " · ".join(words)


def _body(header: BlockHeader, text: str) -> str:
    if header.kind in (BlockKind.TEXT, BlockKind.THINKING):
        return text if text.endswith("\n") else text + "\n"
    ticks = max((len(one) for one in re.findall("`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{header.language or ''}\n{text}{end}{fence}\n"


def _principal(principal: Principal) -> PrincipalLine:
    return PrincipalLine(id=principal.id, username=principal.username, kind=str(principal.kind))
