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
from antiphon_kernel.providers.provider import ToolDefinition
from antiphon_kernel.registry import Tool
from antiphon_kernel.text.lines import number_lines
from antiphon_kernel.tools.json_schema import described_schema
from antiphon_kernel.turns.shell_call import SHELL
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission

_REFERENCES: Final = ("block_id", "parent_id", "after", "before", "after_block")
"""Parameters that name a block."""

_THIS_CONTEXT: Final = "Label or id of another context; this one if absent."

_SHELL_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "A line for the shell, in the project's root."}
    },
    "required": ["command"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """A tool of the registry as models are offered it."""

    tool: str
    """Name in the registry."""
    left_out: tuple[str, ...] = ()
    """Parameters that models are not told of."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that a model leaves out."""
    advice: str = ""
    """Sentence behind the tool's own description."""

    @property
    def name(self) -> str:
        """Return its name for models: of letters and `_`."""
        return self.tool.replace(".", "_")


_OFFERS: Final = (
    _Offer("block.list", ("depth",)),
    _Offer(
        "block.read",
        ("line_numbers",),
        {"line_numbers": True},
        "Lines are numbered from 0 and stand behind a tab; give the version that is named as"
        " base_version when you edit.",
    ),
    _Offer("block.search"),
    _Offer("block.get", ("version",)),
    _Offer("block.history"),
    _Offer(
        "block.create",
        ("context", "role", "kind", "schema", "status", "metadata"),
        {"kind": "text", "status": "done"},
        "For a text that stays, such as a plan or a draft; an answer is simply said.",
    ),
    _Offer(
        "block.edit",
        advice="If somebody has changed these lines since, the answer shows them as they are now.",
    ),
    _Offer("block.apply_patch"),
    _Offer("block.set_field"),
    _Offer("block.push_item"),
    _Offer("block.insert_item"),
    _Offer("block.delete_item"),
    _Offer("block.append_log"),
    _Offer("block.undo"),
    _Offer("block.exclude"),
    _Offer("source.list"),
    _Offer("source.read"),
    _Offer("source.add"),
    _Offer("context.list"),
    _Offer("context.usage", ("exclude_contributions", "include_only_contributions", "model")),
    _Offer("kernel.search"),
)


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose arguments are valid."""

    name: str
    """Name of the tool for models."""
    arguments: Mapping[str, Any]
    """Arguments; blocks and contexts in them mean the same for everybody."""
    needs: Permission
    """Right that the asker has to have."""
    is_read_only: bool
    tool: Tool | None = None
    """Tool of the registry; None of the shell."""


class ModelTools:
    """The tools that one model may call in one context."""

    def __init__(
        self,
        kernel: Kernel,
        context: Context,
        prompt: str | None,
        names: Sequence[str] | None = None,
    ) -> None:
        """
        Args:
            prompt: the block that the model answers, and new ones of its own too.
            names: of the tools that it may call; all if None.
        """
        self._kernel = kernel
        self._context = context
        self._prompt = prompt
        known = kernel.registry.names
        self._offers = {
            one.name: one
            for one in _OFFERS
            if one.tool in known and (names is None or one.name in names)
        }
        self._has_shell = names is None or SHELL in names

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools as the model is told of them, always in the same order."""
        tools = [(one, self._kernel.registry[one.tool]) for one in self._offers.values()]
        offered = [_definition(one, tool.doc, tool.params) for one, tool in tools]
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
            return _prepare_shell(arguments)
        tool = self._kernel.registry[offer.tool]
        return self._prepare(offer, tool, arguments)

    def _prepare(self, offer: _Offer, tool: Tool, said: Mapping[str, Any]) -> PreparedCall:
        if hidden := [name for name in said if name in offer.left_out]:
            raise invalid_params(f"{offer.name} does not take {', '.join(hidden)}.")
        arguments = {**offer.preset, **{key: one for key, one in said.items() if one is not None}}
        for key in _REFERENCES:
            if isinstance(arguments.get(key), str) and is_path(arguments[key]):
                arguments[key] = f"{self._context.id}/{arguments[key]}"
        if offer.tool == "block.create":
            arguments.setdefault("parent_id", self._prompt)
        elif "context" in tool.params.model_fields:
            arguments.setdefault("context", self._context.id)
        try:
            tool.parse(arguments)
        except AntiphonError as error:
            error.message = error.message.replace(tool.name, offer.name)
            raise
        is_read_only = tool.needs is Permission.READ
        return PreparedCall(offer.name, arguments, tool.needs, is_read_only, tool)

    async def run(self, actor: Actor, call: PreparedCall) -> str:
        """Run a call of a tool of the registry as the model; return its result as text.

        Raises:
            AntiphonError: what the tool can fail with.
        """
        assert call.tool is not None
        result = await self._kernel.call(actor, call.tool.name, call.arguments)
        if call.tool.name == "block.read":
            return await self._numbered_text(result)
        return json.dumps(result, ensure_ascii=False, indent=1)

    async def _numbered_text(self, read: Mapping[str, Any]) -> str:
        """Return lines of a block behind its path and version."""
        context, block = await self._kernel.find_block(read["block_id"])
        await layout_of(context).load()
        items = layout_of(context).arranged().items
        paths = (one.path for one in items if one.path is not None and one.block.id == block)
        path = next(paths, None)
        prefix = "" if context is self._context else f"{context.label}/"
        head = [
            f"path: {prefix}{path}" if path is not None else f"block_id: {block}",
            f"version: {read['version']}",
            f"lines: {read['line_count']}",
        ]
        return "\n".join([*head, "", read["content"]])


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


def _prepare_shell(arguments: Mapping[str, Any]) -> PreparedCall:
    command = arguments.get("command")
    if not isinstance(command, str) or not command.strip():
        raise invalid_params(f"{SHELL!r} takes `command`, a string that is not empty.")
    return PreparedCall(SHELL, {"command": command}, Permission.OWN, is_read_only=False)


_SHELL_DEFINITION: Final = ToolDefinition(
    SHELL,
    "Run a command in the project's root and return what it prints. Only the owner of the kernel"
    " has commands run, so the call may be refused or has to be allowed first.",
    JsonObject(_SHELL_SCHEMA),
)


@cache
def _definition(offer: _Offer, doc: str, params: type) -> ToolDefinition:
    description = " ".join(part for part in (doc, offer.advice) if part)
    schema = _schema(described_schema(params), offer)
    return ToolDefinition(offer.name, description, JsonObject(schema))


def _schema(described: Mapping[str, Any], offer: _Offer) -> dict[str, Any]:
    """Return the schema of the arguments as services take it: without references and nulls."""
    properties = {
        key: _plain(value, described.get("$defs", {}))
        for key, value in described.get("properties", {}).items()
        if key not in offer.left_out
    }
    if "context" in properties:
        properties["context"]["description"] = _THIS_CONTEXT
    needed = [
        key
        for key in described.get("required", ())
        if key not in offer.left_out and key not in offer.preset
    ]
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**named, **{key: one for key, one in schema.items() if key != "$ref"}}
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("discriminator", "title") or (key == "default" and value is None):
            continue
        plain["anyOf" if key == "oneOf" else key] = (
            {name: _plain(one, definitions) for name, one in value.items()}
            if key == "properties"
            else _plain(value, definitions)
        )
    options = [one for one in plain.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1 and isinstance(options[0], dict):
        del plain["anyOf"]
        plain = {**options[0], **plain}
    elif options:
        plain["anyOf"] = options
    return plain
