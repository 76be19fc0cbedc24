"""The tools that programs call over MCP: those of the registry, with its words for them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from mcp_types import Tool as ToolEntry
from mcp_types import ToolAnnotations

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Result, Tool, described_schema
from antiphon_kernel.turns.model_tools import error_text
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names, quote
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_PAGE: Final = 20_000
"""Code points of text on one page of a context."""

_LAST: Final = 50
"""Items of which the last page is made."""

_Call = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Calls a tool of the registry as the program that asks."""


class PageItem(Result):
    """One item of a context, as a model reads it."""

    index: int
    """Place in the whole context, counted from 0."""
    block_id: str
    name: str
    path: str | None = None
    """Path that tools take for `block_id`, too; absent of the header of a turn."""
    username: str
    """Name of the block's author."""
    text: str
    """Text as it is read."""
    truncated: bool
    """Whether the text goes on: read_block shows all of it."""


class ContextPageResult(Result):
    """Items in a row."""

    context_version: int
    items: list[PageItem]
    """In the order in which they are read."""
    count: int
    """How many there are in the whole context."""
    next: int | None = None
    """Value of `start` for those that follow; absent at the end."""


async def _read_context(call: _Call, said: Mapping[str, Any]) -> dict[str, Any]:
    layout, start = {"context": said["context"]}, said.get("start")
    if start is None:
        read = await call("context.layout", {**layout, "last": _LAST})
    elif isinstance(start, int) and start >= 0:
        count = (await call("context.layout", {**layout, "last": 1}))["count"]
        read = await call("context.layout", {**layout, "last": max(1, count - start)})
    else:
        raise invalid_params(f"start is a number from 0 on, found {quote(str(start))}.")
    found = [one for one in read["items"] if start is None or one["index"] >= start]
    room, page = _PAGE, list[PageItem]()
    for one in found if start is not None else reversed(found):
        text = one["text"]
        if page and len(text) > room:
            break
        room -= len(text)
        cut = {"text": text[:_PAGE], "truncated": len(text) > _PAGE}
        kept = {key: one.get(key) for key in PageItem.model_fields if key not in cut}
        page.append(PageItem(**kept, **cut))
    page.sort(key=lambda one: one.index)
    behind = page[-1].index + 1 if page else read["count"]
    return ContextPageResult(
        context_version=read["context_version"],
        items=page,
        count=read["count"],
        next=behind if behind < read["count"] else None,
    ).model_dump(mode="json", exclude_none=True)


async def _append(call: _Call, said: Mapping[str, Any]) -> dict[str, Any]:
    """Write at the end of a block, also of one that is done."""
    try:
        return await call("block.append", said)
    except AntiphonError as error:
        if error.code != ErrorCode.INVALID_TRANSITION:
            raise
    place = {key: one for key, one in said.items() if key != "text"}
    now = await call("block.read", place)
    splice = {"offset": len(now["content"]), "insert": said["text"], "base_version": now["version"]}
    return await call("block.splice", {**place, **splice})


async def _list_files(call: _Call, said: Mapping[str, Any]) -> dict[str, Any]:
    """List what the caller may name: all files, or those that somebody has opened."""
    try:
        return await call("file.list", said)
    except AntiphonError as error:
        if error.code != ErrorCode.PERMISSION_DENIED or said.keys() - {"limit"}:
            raise
        return {"paths": [one["path"] for one in (await call("file.status", {}))["files"]]}


@dataclass(frozen=True, slots=True, eq=False)
class OfferedTool:
    """A tool of the registry as it is offered."""

    name: str
    tool: str
    """Name in the registry."""
    params: tuple[str, ...] = ()
    """Parameters that are offered."""
    required: tuple[str, ...] = ()
    """Those of them that may be left out elsewhere, and not here."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that are left out."""
    doc: str = ""
    """What it does, if the registry does not say that."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Schemas of parameters that are others than the registry's."""
    run: Callable[[_Call, Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    """How it is done, if not by one call."""
    result: type[Result] | None = None
    """What it returns, if not what the registry's returns."""
    destroys: bool = False
    """Whether it takes away text that was there."""


_PLACE: Final = ("block_id", "section")
_CONTEXT: Final = {
    "context": {"type": "string", "description": "Label or id of the context: see list_contexts."}
}

TOOLS: Final = (
    OfferedTool("list_contexts", "context.list", ("archived",)),
    OfferedTool(
        "read_context",
        "context.layout",
        required=("context",),
        doc="Read a context, its conversation and documents, as a model reads it: page by page, the"
        " last page first. Each item has the path and the id by which other tools take its block.",
        more={
            **_CONTEXT,
            "start": {
                "type": "integer",
                "minimum": 0,
                "description": "Index of the first item to read; the last page if absent.",
            },
        },
        run=_read_context,
        result=ContextPageResult,
    ),
    OfferedTool(
        "read_block",
        "block.read",
        (*_PLACE, "range", "version"),
        preset={"line_numbers": True},
        doc="Read a block, or some of its lines, each with its number, counted from 0, and a tab in"
        " front. The version in the answer is the base_version of an edit.",
    ),
    OfferedTool(
        "search",
        "kernel.search",
        ("query", "regex", "kinds", "path_prefix", "max_blocks", "after_block"),
        preset={"kinds": [str(kind) for kind in BlockKind]},
        doc="Find text in the blocks of every context.",
    ),
    OfferedTool(
        "write_message",
        "block.create",
        ("parent_id", "after"),
        ("context", "content"),
        {"kind": "text", "status": "done"},
        doc="Write a text of your own into a context: a message to everybody who reads it.",
        more={**_CONTEXT, "content": {"type": "string", "description": "All of the text."}},
    ),
    OfferedTool(
        "append",
        "block.append",
        (*_PLACE, "text"),
        doc="Write at the end of a block, exactly this text: begin it with a newline for a line of"
        " its own.",
        run=_append,
    ),
    OfferedTool(
        "edit",
        "block.edit",
        (*_PLACE, "operations", "base_version"),
        ("base_version",),
        destroys=True,
    ),
    OfferedTool("apply_patch", "block.apply_patch", (*_PLACE, "patch"), destroys=True),
    OfferedTool("blame", "block.blame", _PLACE),
    OfferedTool(
        "list_files",
        "file.list",
        ("glob", "after", "limit"),
        doc="List the files of the project that you may read: all of them for an owner, else those"
        " that somebody has opened.",
        run=_list_files,
    ),
    OfferedTool(
        "read_file", "file.read", ("path", "start_line", "end_line"), preset={"line_numbers": True}
    ),
    OfferedTool(
        "edit_file",
        "file.edit",
        ("path", "old_text", "new_text", "start_line", "end_line", "base_version"),
        destroys=True,
    ),
    OfferedTool(
        "undo_mine",
        "block.undo",
        ("block_id", "preview"),
        ("context",),
        doc="Take back your own last edit in a context, never what others wrote.",
        more=_CONTEXT,
        destroys=True,
    ),
)
"""In the order in which they are listed."""

_NAMES: Final = {one.tool: one.name for one in TOOLS} | {
    "block.list": "read_context",
    "block.search": "search",
}
_NAMED: Final = re.compile(rf"\b({'|'.join(map(re.escape, _NAMES))})\b")

_READ_AGAIN: Final = "Next: read_block or read_file, then send the change again with that version."
_NEXT: Final[Mapping[str, str]] = {
    ErrorCode.BLOCK_NOT_FOUND: "Next: read_context shows the blocks of a context, search finds"
    " them by their text.",
    ErrorCode.CONTEXT_NOT_FOUND: "Next: list_contexts.",
    ErrorCode.AMBIGUOUS_ID: "Next: give more of the id; list_contexts and read_context show it.",
    ErrorCode.STALE_VERSION: _READ_AGAIN,
    ErrorCode.CONTENT_MISMATCH: _READ_AGAIN,
    ErrorCode.LINE_OUT_OF_RANGE: _READ_AGAIN,
    ErrorCode.PATCH_FAILED: _READ_AGAIN,
    ErrorCode.TOO_LARGE: "Next: ask for less, or send less at a time.",
}
"""What to call after an error, by its code."""


def explained(error: AntiphonError) -> str:
    """Return an error for a model: what is there now, and what to call next."""
    said = [_renamed(error_text(error)), _NEXT.get(error.code, "")]
    return "\n".join(filter(None, said))


def _renamed(text: str) -> str:
    """Return what the registry says with the names that tools have here."""
    return _NAMED.sub(lambda found: _NAMES[found[1]], text)


class McpTools:
    """The tools of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._offered = {one.name: one for one in TOOLS if one.tool in kernel.registry.names}
        self.listed = [_entry(one, kernel.registry[one.tool]) for one in self._offered.values()]
        """As clients are told of them, always in the same order."""

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    async def call(self, actor: Actor, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool as a program.

        Raises:
            AntiphonError: whatever it can fail with.
        """
        offer = self._offered[name]
        said = {key: one for key, one in said.items() if one is not None}
        takes = (*offer.params, *offer.more)
        unknown = [key for key in said if key not in takes]
        missing = [key for key in offer.required if key not in said]
        if unknown or missing:
            wrong = f"does not take {join_names(map(quote, unknown))}" if unknown else ""
            lacks = f"needs {join_names(missing)}" if missing else ""
            raise invalid_params(
                f"{name} {' and '.join(filter(None, (wrong, lacks)))}. It takes:"
                f" {', '.join(takes)}."
            )
        said = {**offer.preset, **said}
        if offer.run is not None:
            return await offer.run(partial(self._kernel.call, actor), said)
        return await self._kernel.call(actor, offer.tool, said)


def _entry(offer: OfferedTool, tool: Tool) -> ToolEntry:
    schema = described_schema(tool.params)
    properties = {key: dict(schema["properties"][key]) for key in offer.params}
    for key in properties.keys() & offer.preset.keys():
        del properties[key]["default"]
    known = [key for key in schema.get("required", ()) if key in properties]
    reads = tool.needs is Permission.READ
    takes = {
        "type": "object",
        "properties": {**offer.more, **properties},
        "required": list(dict.fromkeys([*known, *offer.required])),
        "additionalProperties": False,
    }
    if "#/$defs/" in json.dumps(properties):
        takes["$defs"] = schema["$defs"]
    return ToolEntry(
        name=offer.name,
        description=_renamed(offer.doc or " ".join(tool.doc.split())),
        input_schema=json.loads(_renamed(json.dumps(takes))),
        output_schema=described_schema(offer.result or tool.result),
        annotations=ToolAnnotations(
            title=offer.name.replace("_", " ").capitalize(),
            read_only_hint=reads,
            destructive_hint=offer.destroys,
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )
