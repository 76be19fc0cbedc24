"""Findings in a file: kept in the metadata of its block, with the source that has found each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from antiphon_kernel.files.open_file import CHECKED, OpenFile
from antiphon_kernel.text.findings import CheckFinding
from antiphon_kernel.types.block_metadata import FINDINGS
from antiphon_kernel.types.records import Actor

SourceActors = Callable[[str], Awaitable[Actor]]
"""Gives the actor of a source outside, by its name."""


def store_findings(file: OpenFile, source: Actor, found: Sequence[CheckFinding]) -> None:
    """Put what a source has found in the place of what it had found before."""
    name = source.principal.username
    context, block = file.context, file.block
    metadata = dict(context.document.header(block).metadata)
    before = [dict(one) for one in metadata.pop(FINDINGS, {"rows": ()})["rows"]]
    rows = [one for one in before if one.get("source") != name]
    rows = sorted([*rows, *(_row(one, name) for one in found)], key=lambda one: one["line"])
    if rows == before:
        return
    if rows:
        metadata[FINDINGS] = {"rows": rows}
    context.set_fields(source, CHECKED, block, {"metadata": metadata})


async def forget_findings(file: OpenFile, sources: SourceActors, *, kept: str | None) -> None:
    """Forget what all sources but one had found before the file was closed."""
    rows = file.context.document.header(file.block).metadata.get(FINDINGS, {"rows": ()})["rows"]
    for name in {one.get("source") for one in rows} - {kept, None}:
        store_findings(file, await sources(name), ())


def _row(finding: CheckFinding, source: str) -> dict[str, Any]:
    fields = finding._asdict() | {"severity": str(finding.severity), "path": None, "source": source}
    return {name: one for name, one in fields.items() if one is not None}
