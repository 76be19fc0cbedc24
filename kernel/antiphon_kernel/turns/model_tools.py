"""Tools of models: those of the registry that a model may call, in its own words, and the shell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import layout_of
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import is_path
from antiphon_kernel.providers import ModelConfig
from antiphon_kernel.providers.provider import ToolDefinition
from antiphon_kernel.registry import Tool, described_schema
from antiphon_kernel.text.lines import number_lines
from antiphon_kernel.turns.block_writer import SHELL
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_REFERENCES: Final = ("block_id", "parent_id", "after", "before", "after_block")
"""Parameters that name a block."""

_BLOCK: Final = "Path or id of the block."
_CONTEXT: Final = "Another context, by label; this one if absent."
_PLACE: Final = {"block_id": _BLOCK, "section": "Which text or list of it, if it has several."}

_LEFT_OUT: Final = frozenset(
    """title description default minimum maximum minLength maxLength minItems maxItems
    additionalProperties""".split()
)
"""Keywords of schemas that a call is checked by, of which models are not told."""

_RANGE_OF_LINES: Final = {
    "type": "object",
    "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
    "required": ["start", "end"],
}

_LINES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "start_line": {"type": "integer"},
            "end_line": {"type": "integer"},
            "content": {"type": "string"},
            "expected_text": {"type": "string"},
        },
        "required": ["start_line", "end_line", "content"],
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """A tool of the registry as models are offered it: in few words, since every request has it."""

    tool: str
    """Name in the registry."""
    doc: str
    params: Mapping[str, str]
    """Parameters that models are told of, with what they are if their names do not say it."""
    refused: tuple[str, ...] = ()
    """Parameters that are not theirs to give."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that a model leaves out."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Simpler schemas of parameters than the registry's."""

    @property
    def name(self) -> str:
        """Return its name for models: of letters and `_`."""
        return self.tool.replace(".", "_")


_OFFERS: Final = (
    _Offer(
        "block.list",
        "List blocks of the context in order.",
        {"context": _CONTEXT, "kind": "", "after_block": "Go on behind this one.", "limit": ""},
        ("depth",),
    ),
    _Offer(
        "block.read",
        "Read a block, or some lines of it. Lines are numbered from 0, in front of a tab; the"
        " version that is named is the base_version of an edit.",
        {**_PLACE, "range": "Lines, the end exclusive.", "version": "An earlier one."},
        ("line_numbers",),
        {"line_numbers": True},
        {"range": _RANGE_OF_LINES},
    ),
    _Offer(
        "block.search",
        "Find text in a block, with the numbers of its lines.",
        {**_PLACE, "query": "", "regex": ""},
    ),
    _Offer("block.get", "Read fields and lists of a block as JSON.", {**_PLACE, "field": ""}),
    _Offer(
        "block.history", "List who changed a block, and when.", {"block_id": _BLOCK, "limit": ""}
    ),
    _Offer(
        "block.create",
        "Write a text that stays, such as a plan or a draft; an answer is simply said.",
        {"content": "", "parent_id": "", "after": "Block that it stands behind."},
        ("context", "role", "kind", "schema", "status", "metadata"),
        {"kind": "text", "status": "done"},
        {"content": {"type": "string"}},
    ),
    _Offer(
        "block.edit",
        "Put content in the place of the lines from start_line to end_line (exclusive), all"
        " operations or none. Equal numbers insert, empty content deletes. If somebody has changed"
        " these lines since base_version, the answer shows them as they are now.",
        {**_PLACE, "operations": "", "base_version": "The version that you read."},
        schemas={"operations": _LINES},
    ),
    _Offer("block.apply_patch", "Apply a unified diff to a block.", {**_PLACE, "patch": ""}),
    _Offer("block.set_field", "Set a field.", {**_PLACE, "field": "", "value": ""}),
    _Offer("block.push_item", "Add an item to a list.", {**_PLACE, "field": "", "value": ""}),
    _Offer(
        "block.insert_item",
        "Put an item before another one of a list.",
        {**_PLACE, "field": "", "index": "", "value": ""},
    ),
    _Offer(
        "block.delete_item",
        "Take an item out of a list.",
        {**_PLACE, "field": "", "index": ""},
    ),
    _Offer("block.append_log", "Add an entry to a log.", {**_PLACE, "entry": ""}),
    _Offer(
        "block.undo",
        "Take back your last edit.",
        {"block_id": "Only edits of this block.", "preview": "Only say what would change."},
    ),
    _Offer(
        "block.exclude",
        "Leave a block out of what models read, or let them read it again.",
        {"block_id": _BLOCK, "excluded": ""},
    ),
    _Offer("source.list", "List the sources of the context.", {}),
    _Offer("source.read", "Read a source.", {"path": "As in [path: ...]."}),
    _Offer("source.add", "Add sources to cite; each gets a number.", {"sources": ""}),
    _Offer("context.list", "List the contexts.", {}),
    _Offer(
        "context.usage",
        "Estimate how many tokens the context takes.",
        {},
        ("exclude_contributions", "include_only_contributions", "model"),
    ),
    _Offer(
        "kernel.search",
        "Find text in all contexts.",
        {"query": "", "regex": "", "kinds": "Kinds of blocks; only files if absent."},
    ),
)

SMALL_SET: Final = ("block_read", "block_edit", "block_search", SHELL)
"""Tools of a model with a small window: to read, to edit, to search and to run."""

_SMALL_WINDOW: Final = 16_000
"""Tokens; a model that takes fewer is told of the small set."""
_NO_TOOLS_WINDOW: Final = 4_000
"""Tokens; a model that takes fewer is told of no tools."""


def tools_of(config: ModelConfig | None) -> tuple[str, ...] | None:
    """Return the names of the tools of a model: those that are configured, else by its window.

    None stands for all.
    """
    if config is None or config.tools is not None or config.window is None:
        return config.tools if config is not None else None
    window = config.window
    tokens = window.input if window.total is None else min(window.input, window.total)
    if tokens < _NO_TOOLS_WINDOW:
        return ()
    return SMALL_SET if tokens < _SMALL_WINDOW else None


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose arguments are valid."""

    name: str
    """Name of the tool for models."""
    arguments: Mapping[str, Any]
    """Arguments; blocks and contexts in them mean the same for everybody."""
    needs: Permission
    """Right that the asker has to have."""
    tool: Tool | None = None
    """Tool of the registry; None of the shell."""


@dataclass(eq=False)
class ModelTools:
    """The tools that one model may call in one context."""

    kernel: Kernel
    context: Context
    prompt: str | None
    """The block that the model answers, and new ones of its own too."""
    names: Sequence[str] | None = None
    """Names of the tools that it may call; all if None."""

    def __post_init__(self) -> None:
        names, known = self.names, self.kernel.registry.names
        self._offers = {
            one.name: one
            for one in _OFFERS
            if one.tool in known and (names is None or one.name in names)
        }
        self._has_shell = names is None or SHELL in names

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools as the model is told of them, always in the same order."""
        tools = [(one, self.kernel.registry[one.tool]) for one in self._offers.values()]
        offered = [_definition(one, tool.params) for one, tool in tools]
        return (*offered, _SHELL_DEFINITION) if self._has_shell else tuple(offered)

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> PreparedCall:
        """Return a call that may be run.

        Raises:
            AntiphonError: unknown_tool, or invalid_params for arguments that are no JSON object or
                not what the tool's schema says.
        """
        offer = self._offers.get(name)
        is_shell = name == SHELL and self._has_shell
        if offer is None and not is_shell:
            names = [*self._offers, *((SHELL,) if self._has_shell else ())]
            raise AntiphonError(
                ErrorCode.UNKNOWN_TOOL,
                f"There is no tool {quote(name)}; there are: {', '.join(names) or 'none'}.",
            )
        if isinstance(arguments, str):
            raise invalid_params(
                f"The arguments of {name} are not a JSON object: {quote(arguments)}. Call it again"
                " with a whole one.",
            )
        if offer is None:
            command = arguments.get("command")
            if not isinstance(command, str) or not command.strip():
                raise invalid_params(f"{SHELL!r} takes `command`, a string that is not empty.")
            return PreparedCall(SHELL, {"command": command}, Permission.OWN)
        tool = self.kernel.registry[offer.tool]
        return self._prepare(offer, tool, arguments)

    def _prepare(self, offer: _Offer, tool: Tool, said: Mapping[str, Any]) -> PreparedCall:
        if hidden := [name for name in said if name in offer.refused]:
            raise invalid_params(f"{offer.name} does not take {', '.join(hidden)}.")
        arguments = {**offer.preset, **{key: one for key, one in said.items() if one is not None}}
        for key in _REFERENCES:
            if isinstance(arguments.get(key), str) and is_path(arguments[key]):
                arguments[key] = f"{self.context.id}/{arguments[key]}"
        if offer.tool == "block.create":
            arguments.setdefault("parent_id", self.prompt)
        elif "context" in tool.params.model_fields:
            arguments.setdefault("context", self.context.id)
        if offer.tool == "block.edit" and isinstance(arguments.get("operations"), list):
            arguments["operations"] = [
                {"op": "replace", **one} if isinstance(one, Mapping) else one
                for one in arguments["operations"]
            ]
        try:
            tool.parse(arguments)
        except AntiphonError as error:
            error.message = error.message.replace(tool.name, offer.name)
            raise
        return PreparedCall(offer.name, arguments, tool.needs, tool)

    async def run(self, actor: Actor, call: PreparedCall) -> str:
        """Run a call of a tool of the registry as the model; return its result as text.

        Raises:
            AntiphonError: what the tool can fail with.
        """
        assert call.tool is not None
        result = await self.kernel.call(actor, call.tool.name, call.arguments)
        if call.tool.name != "block.read":
            return json.dumps(result, ensure_ascii=False, indent=1)
        context, block = await self.kernel.find_block(result["block_id"])
        items = (await layout_of(context).load()).items
        paths = (one.path for one in items if one.path is not None and one.block.id == block)
        path = next(paths, None)
        prefix = "" if context is self.context else f"{context.label}/"
        head = [
            f"path: {prefix}{path}" if path is not None else f"block_id: {block}",
            f"version: {result['version']}",
            f"lines: {result['line_count']}",
        ]
        return "\n".join([*head, "", result["content"]])


def error_text(error: AntiphonError) -> str:
    """Return an error as a model is told it; of a stale edit with the lines as they are now."""
    details = {key: value for key, value in error.details.items() if value is not None}
    lines, first = details.pop("lines", None), details.get("start_line")
    said = [f"{error.code}: {error.message}"]
    if isinstance(lines, list) and isinstance(first, int):
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        said.append(number_lines(text, first).rstrip("\n"))
    elif lines is not None:
        details["lines"] = lines
    for key in ("tool", "allowed", "errors"):
        details.pop(key, None)
    if details:
        said.append(json.dumps(details, ensure_ascii=False, default=str))
    return "\n".join(said)


_SHELL_DEFINITION: Final = ToolDefinition(
    SHELL,
    "Run a command in the project's root and return what it prints. The owner may have to allow it"
    " first.",
    JsonObject(
        {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        }
    ),
)


@cache
def _definition(offer: _Offer, params: type) -> ToolDefinition:
    described = described_schema(params)
    known, shared = described.get("properties", {}), described.get("$defs", {})
    properties = {
        key: {
            **(offer.schemas.get(key) or _plain(known[key], shared)),
            **({"description": text} if text else {}),
        }
        for key, text in offer.params.items()
    }
    required = [
        key
        for key in described.get("required", ())
        if key in offer.params and key not in offer.preset
    ]
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolDefinition(offer.name, offer.doc, JsonObject(schema))


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema as services take it, without references, nulls and descriptions."""
    if isinstance(schema, list):
        return [_plain(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    plain = {
        key: {name: _plain(one, definitions) for name, one in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in schema.items()
        if key not in _LEFT_OUT
    }
    options = [one for one in plain.pop("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        return {**options[0], **plain}
    return {**plain, "anyOf": options} if options else plain
