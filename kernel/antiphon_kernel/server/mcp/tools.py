"""The tools that programs call over MCP: those of the registry, with its words for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import mcp_types as types
from pydantic import Field

from antiphon_kernel.kernel import Call, Kernel
from antiphon_kernel.registry import Params, Result, Tool, described_schema, tool
from antiphon_kernel.tools.edit import AppendParams
from antiphon_kernel.turns.model_tools import error_text
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import join_names
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_PAGE: Final = 50
"""Items on one page of a context."""

_SHOWN: Final = 4_000
"""Code points of an item that a page shows."""


class LayoutPageParams(Params):
    """A page of a context."""

    context: str
    start: int | None = Field(default=None, ge=0)
    """Index of the first item to read; the last page if absent."""


class LayoutPageItem(Result):
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
    """Whether the text goes on: block.read shows all of it."""


class LayoutPageResult(Result):
    """Items in a row."""

    context_version: int
    items: list[LayoutPageItem]
    """In the order in which they are read."""
    count: int
    """How many there are in the whole context."""
    next: int | None = None
    """Value of `start` for those that follow; absent at the end."""


@tool("context.layout", needs=Permission.READ)
async def read_context(call: Call, params: LayoutPageParams) -> LayoutPageResult:
    """Read a context, its conversation and documents, as a model reads it, page by page.

    Each item has the path and the id by which other tools take its block.
    """
    kernel, said, start = call.kernel, {"context": params.context}, params.start
    last = _PAGE
    if start is not None:
        last = (await kernel.call(call.actor, "context.layout", {**said, "last": 1}))["count"]
        last = max(1, last - start)
    read = await kernel.call(call.actor, "context.layout", {**said, "last": last})
    found = [one for one in read["items"] if one["index"] >= (start or 0)][:_PAGE]
    items = []
    for one in found:
        text = one["text"]
        cut = {"text": text[:_SHOWN], "truncated": len(text) > _SHOWN}
        items.append(
            LayoutPageItem(**{key: one.get(key) for key in LayoutPageItem.model_fields} | cut)
        )
    behind = items[-1].index + 1 if items else read["count"]
    return LayoutPageResult(
        context_version=read["context_version"],
        items=items,
        count=read["count"],
        next=behind if behind < read["count"] else None,
    )


class AppendedResult(Result):
    """The block as it is now."""

    version: int


@tool("block.append", needs=Permission.WRITE)
async def append(call: Call, params: AppendParams) -> AppendedResult:
    """Write at the end of a block, exactly this text: begin it with a newline for a new line."""
    kernel, said = call.kernel, params.model_dump(exclude={"stream"}, exclude_none=True)
    try:
        done = await kernel.call(call.actor, "block.append", said)
    except AntiphonError as error:
        if error.code != ErrorCode.INVALID_TRANSITION:
            raise
        # It is done: nobody streams into it, and its end is a place like any other.
        text = said.pop("text")
        now = await kernel.call(call.actor, "block.read", said)
        place = {"offset": len(now["content"]), "base_version": now["version"]}
        done = await kernel.call(call.actor, "block.splice", {**said, **place, "insert": text})
    return AppendedResult(version=done["version"])


class _McpOffer(NamedTuple):
    """A tool of the registry as programs are offered it."""

    name: str
    tool: str | Tool
    """Name in the registry, or a tool that stands for it here."""
    params: str
    """Parameters that are offered; with ! those that may not be left out here."""
    doc: str = ""
    """Its description, if its own docstring is not what is to be said."""
    preset: Mapping[str, Any] = {}
    """Values of parameters that are left out."""
    destroys: bool = False
    """Whether it takes away text that was there."""

    @property
    def takes(self) -> list[str]:
        """Return the parameters that are offered."""
        return self.params.replace("!", "").split()

    @property
    def required(self) -> list[str]:
        """Return those that may not be left out here."""
        return [key[:-1] for key in self.params.split() if key[-1] == "!"]


_OFFERS: Final = (
    _McpOffer("list_contexts", "context.list", "archived"),
    _McpOffer("read_context", read_context, "context! start"),
    _McpOffer(
        "read_block",
        "block.read",
        "block_id section range version",
        "Read a block, or some of its lines, each with its number, counted from 0, and a tab in"
        " front. The version in the answer is the base_version of an edit.",
        {"line_numbers": True},
    ),
    _McpOffer(
        "search",
        "kernel.search",
        "query regex kinds path_prefix max_blocks after_block",
        "Find text in the blocks of every context, and in files that are open.",
        {"kinds": [str(kind) for kind in BlockKind]},
    ),
    _McpOffer(
        "write_message",
        "block.create",
        "context! content! parent_id after",
        "Write a text of your own into a context: a message to everybody who reads it.",
        {"kind": "text", "status": "done"},
    ),
    _McpOffer("append", append, "block_id section text"),
    _McpOffer("edit", "block.edit", "block_id section operations base_version!", destroys=True),
    _McpOffer("apply_patch", "block.apply_patch", "block_id section patch", destroys=True),
    _McpOffer("blame", "block.blame", "block_id section"),
    _McpOffer(
        "list_files",
        "file.status",
        "",
        "List the files of the project that are open here: with text that may not be on disk yet.",
    ),
    _McpOffer("read_file", "file.read", "path start_line end_line", preset={"line_numbers": True}),
    _McpOffer(
        "edit_file",
        "file.edit",
        "path old_text new_text start_line end_line base_version",
        destroys=True,
    ),
    _McpOffer(
        "undo_mine",
        "block.undo",
        "context! block_id preview",
        "Take back your own last edit in a context, never what others wrote.",
        destroys=True,
    ),
)
"""In the order in which they are listed."""

_PLAINER: Final = {
    "context": {"type": "string", "description": "Label or id of the context: see list_contexts."},
    "content": {"type": "string", "description": "All of the text."},
}
"""Parameters of which the registry says more than what holds here."""

_NAMES: Final = {
    "block.list": "read_context",
    "block.search": "search",
    **{one.tool if isinstance(one.tool, str) else one.tool.name: one.name for one in _OFFERS},
}
_NAMED: Final = re.compile(rf"\b({'|'.join(map(re.escape, _NAMES))})\b")

_READ_AGAIN: Final = "Next: read_block or read_file, then send the change again with that version."
_NEXT: Final[Mapping[str, str]] = {
    ErrorCode.BLOCK_NOT_FOUND: "Next: read_context, or search for its text.",
    ErrorCode.CONTEXT_NOT_FOUND: "Next: list_contexts.",
    ErrorCode.AMBIGUOUS_ID: "Next: give more of the id, as read_context shows it.",
    ErrorCode.STALE_VERSION: _READ_AGAIN,
    ErrorCode.CONTENT_MISMATCH: _READ_AGAIN,
    ErrorCode.LINE_OUT_OF_RANGE: _READ_AGAIN,
    ErrorCode.PATCH_FAILED: _READ_AGAIN,
}
"""The next call after an error, by its code."""


def explained(error: AntiphonError) -> str:
    """Return an error for a model: what is there now, and what to call next."""
    return f"{_renamed(error_text(error))}\n{_NEXT.get(error.code, '')}".rstrip()


def _renamed(text: str) -> str:
    """Return what the registry says with the names that tools have here."""
    return _NAMED.sub(lambda found: _NAMES[found[1]], text)


class McpTools:
    """The tools of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        registry = kernel.registry
        self._offered = {
            one.name: (one, one.tool if isinstance(one.tool, Tool) else registry[one.tool])
            for one in _OFFERS
        }
        for _, known in self._offered.values():  # made once, which takes a while
            described_schema(known.params), described_schema(known.result)

    @cached_property
    def listed(self) -> list[types.Tool]:
        """Return the tools as clients are told of them, always in the same order."""
        return [_entry(*one) for one in self._offered.values()]

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    async def call(self, actor: Actor, name: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool as a program.

        Raises:
            AntiphonError: whatever it can fail with.
        """
        offer, known = self._offered[name]
        given = {**offer.preset, **{key: one for key, one in said.items() if one is not None}}
        refused = [key for key in said if key not in offer.takes]
        missing = [key for key in offer.required if key not in given]
        if refused or missing:
            wrong = [f"does not take {join_names(refused)}"] if refused else []
            wrong += [f"needs {join_names(missing)}"] if missing else []
            takes = join_names(offer.takes)
            raise invalid_params(f"{name} {' and '.join(wrong)}. It takes: {takes}.")
        if isinstance(offer.tool, str):
            return await self._kernel.call(actor, offer.tool, given)
        call = self._kernel.start_call(actor, known)
        result: Result = await known.handler(call, known.parse(given))
        return result.model_dump(mode="json", exclude_none=True)


def _entry(offer: _McpOffer, known: Tool) -> types.Tool:
    schema = json.loads(_renamed(json.dumps(described_schema(known.params))))
    wanted = [*schema.get("required", ()), *offer.required]
    schema["properties"] = {
        key: _PLAINER.get(key) or schema["properties"][key] for key in offer.takes
    }
    schema["required"] = [key for key in offer.takes if key in wanted]
    for key in {*wanted, *offer.preset} & schema["properties"].keys():
        schema["properties"][key].pop("default", None)
    if "#/$defs/" not in json.dumps(schema["properties"]):
        schema.pop("$defs", None)
    for key in ("title", "description"):
        schema.pop(key, None)
    reads = known.needs is Permission.READ
    return types.Tool(
        name=offer.name,
        description=_renamed(offer.doc or " ".join(known.doc.split())),
        input_schema=schema,
        output_schema=described_schema(known.result),
        annotations=types.ToolAnnotations(
            title=offer.name.replace("_", " ").capitalize(),
            read_only_hint=reads,
            destructive_hint=offer.destroys,
            idempotent_hint=reads,
            open_world_hint=False,
        ),
    )
