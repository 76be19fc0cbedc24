"""Tools of models: those of the registry that a model may call, in its own words, and the shell."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import layout_of
from antiphon_kernel.files.file_contexts import FILE_PREFIX, FilePlace
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import is_path
from antiphon_kernel.mcp_servers import McpTool, check_value
from antiphon_kernel.providers import ModelConfig
from antiphon_kernel.providers.provider import ToolDefinition
from antiphon_kernel.registry import Tool, described_schema
from antiphon_kernel.text.lines import number_lines, split_lines
from antiphon_kernel.text.patch import split_patch, unified_diff
from antiphon_kernel.turns.block_writer import SHELL
from antiphon_kernel.turns.permission import OWN_NAMES
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.project_paths import unusable
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.roles import Permission

_REFERENCES: Final = ("block_id", "parent_id", "after", "before", "after_block")
"""Parameters that name a block."""

_ABOUT: Final = {
    "block_id": "Path or id.",
    "section": "If it has several.",
    "context": "This one if absent.",
}
"""Parameters of which more is said than their names, unless an offer says something else."""

_LEFT_OUT: Final = frozenset(
    """title description default minimum maximum minLength maxLength minItems maxItems
    additionalProperties""".split()
)
"""Keywords of schemas that a call is checked by, of which models are not told."""


def _object(optional: Mapping[str, str] = {}, **required: str) -> dict[str, Any]:
    """Return the schema of an object whose fields have these types."""
    properties = {name: {"type": kind} for name, kind in {**required, **optional}.items()}
    return {"type": "object", "properties": properties, "required": [*required]}


_RANGE_OF_LINES: Final = _object(start="integer", end="integer")

_OPERATION: Final = _object(
    {"expected_text": "string"}, start_line="integer", end_line="integer", content="string"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """A tool of the registry as models are offered it: in few words, since every request has it."""

    tool: str
    """Name in the registry."""
    doc: str
    params: str = ""
    """Parameters that models are told of, and may give."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of parameters."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that a model leaves out."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Simpler schemas of parameters than the registry's."""

    @property
    def name(self) -> str:
        """Return its name for models: of letters and `_`."""
        return OWN_NAMES.get(self.tool) or self.tool.replace(".", "_")


_OFFERS: Final = (
    _Offer("block.list", "List blocks of the context in order.", "context kind after_block limit"),
    _Offer(
        "block.read",
        "Read a block, or some lines of it. Lines are numbered from 0, in front of a tab; the"
        " version that is named is the base_version of an edit.",
        "block_id section range version",
        {"range": "Lines, the end exclusive.", "version": "An earlier one."},
        {"line_numbers": True},
        {"range": _RANGE_OF_LINES},
    ),
    _Offer(
        "block.search", "Find text in a block, with line numbers.", "block_id section query regex"
    ),
    _Offer("block.get", "Read fields and lists of a block as JSON.", "block_id section field"),
    _Offer("block.history", "List who changed a block, and when.", "block_id limit"),
    _Offer(
        "block.create",
        "Write a text that stays, such as a plan; an answer is simply said.",
        "content parent_id after",
        {"after": "Stands behind it."},
        {"kind": "text", "status": "done"},
        {"content": {"type": "string"}},
    ),
    _Offer(
        "block.edit",
        "Put content in the place of the lines from start_line to end_line (exclusive), all"
        " operations or none. Equal numbers insert, empty content deletes.",
        "block_id section operations base_version",
        {"base_version": "The version that you read."},
        schemas={"operations": {"type": "array", "items": _OPERATION}},
    ),
    _Offer("block.apply_patch", "Apply a unified diff to a block.", "block_id section patch"),
    _Offer("block.set_field", "Set a field.", "block_id section field value"),
    _Offer("block.push_item", "Add an item to a list.", "block_id section field value"),
    _Offer(
        "block.insert_item",
        "Put an item before another one of a list.",
        "block_id section field index value",
    ),
    _Offer("block.delete_item", "Take an item out of a list.", "block_id section field index"),
    _Offer("block.append_log", "Add an entry to a log.", "block_id section entry"),
    _Offer(
        "block.undo",
        "Take back your last edit.",
        "block_id preview",
        {"block_id": "Only edits of this block."},
    ),
    _Offer(
        "block.exclude",
        "Leave a block out of what models read, or let them read it again.",
        "block_id excluded",
    ),
    _Offer("source.list", "List the sources of the context."),
    _Offer("source.read", "Read a source.", "path", {"path": "As in [path: ...]."}),
    _Offer("source.add", "Add sources to cite; each gets a number.", "sources"),
    _Offer("context.list", "List the contexts."),
    _Offer(
        "drift.push",
        "Copy blocks of this context, or its last answer, into another one.",
        "to blocks wake",
        {"wake": "Ask for an answer."},
    ),
    _Offer("drift.pull", "Copy blocks of another context into this one.", "source blocks"),
    _Offer("drift.distill", "Sum up a context, or blocks of it, in this one.", "source blocks"),
    _Offer("context.usage", "Estimate the tokens of the context."),
    _Offer(
        "kernel.search",
        "Find text in all contexts.",
        "query regex kinds",
        {"kinds": "Kinds of blocks; only files if absent."},
    ),
    _Offer(
        "file.read",
        "Read a file of the project, or some lines of it, numbered as by block_read.",
        "path start_line end_line",
        {"end_line": "Exclusive."},
        {"line_numbers": True},
    ),
    _Offer(
        "file.list",
        "List files of the project.",
        "glob after",
        {"glob": "Such as src/**/*.py."},
        {"limit": 200},
    ),
    _Offer("file.search", "Find lines in files of the project.", "query regex glob limit"),
    _Offer(
        "file.edit",
        "Put new_text in the place of old_text, which stands once in a file that you have read; or"
        " of the lines from start_line to end_line (exclusive).",
        "path old_text new_text start_line end_line base_version",
        {"base_version": "Of the lines."},
    ),
    _Offer(
        "file.patch",
        "Apply a unified diff to files that you have read, all or none; --- /dev/null makes one.",
        "patch",
    ),
    _Offer("file.create", "Make a file.", "path content"),
)

SMALL_SET: Final = ("block_read", "block_edit", "block_search", "file_read", "file_edit", SHELL)
"""Tools of a model with a small window: to read, to edit, to search and to run."""

_SMALL_WINDOW: Final = 16_000
"""Tokens; a model that takes fewer is told of the small set."""
_NO_TOOLS_WINDOW: Final = 4_000
"""Tokens; a model that takes fewer is told of no tools."""


def tools_of(config: ModelConfig) -> tuple[str, ...] | None:
    """Return the names of the tools of a model: those that are configured, else by its window.

    None stands for all.
    """
    if config.tools is not None or config.window is None:
        return config.tools
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
    """Tool of the registry; None of the shell and of an MCP server's."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Paths, without links, of the files that it names, by these names."""
    served: McpTool | None = None

    @property
    def reads(self) -> bool:
        """Return whether it changes nothing."""
        return self.tool is not None and self.tool.needs is Permission.READ

    @property
    def changes(self) -> Collection[str]:
        """Return the paths of the files that it changes."""
        return () if self.reads else self.files.values()

    @property
    def is_about_files(self) -> bool:
        """Return whether it names files, or reads the whole project."""
        return self.tool is not None and (bool(self.files) or self.tool.name.startswith("file."))


@dataclass(eq=False)
class ModelTools:
    """The tools that one model may call in one context."""

    kernel: Kernel
    context: Context
    prompt: str | None
    """The block that the model answers, and new ones of its own too."""
    names: Sequence[str] | None = None
    """Names of the tools that it may call; all if None."""
    model: Principal | None = None
    """Principal of the model; None where nothing is called."""
    served: Sequence[McpTool] = ()
    read: dict[str, int | None] = field(default_factory=dict)
    """Version of each file that the model has read or changed in this context, by path, as far as
    it is known."""

    def __post_init__(self) -> None:
        names, known = self.names, self.kernel.registry.names
        self._offers = {
            one.name: one
            for one in _OFFERS
            if one.tool in known and (names is None or one.name in names)
        }
        self._has_shell = names is None or SHELL in names
        self._changed: set[str] = set()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the tools as the model is told of them, always in the same order."""
        registry = self.kernel.registry
        offered = [_definition(one, registry[one.tool].params) for one in self._offers.values()]
        shell = (_SHELL_DEFINITION,) if self._has_shell else ()
        served = (
            ToolDefinition(one.name, one.description, JsonObject(one.parameters))
            for one in self.served
        )
        return (*offered, *shell, *served)

    async def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> PreparedCall:
        """Return a call that may be run.

        Raises:
            AntiphonError: unknown_tool, or invalid_params for arguments that are no JSON object or
                not what the tool's schema says; permission_denied for a file that the model sees
                nothing of.
        """
        offer = self._offers.get(name)
        served = next((one for one in self.served if one.name == name), None)
        is_shell = name == SHELL and self._has_shell
        if offer is None and served is None and not is_shell:
            names = [one.name for one in self.definitions]
            raise AntiphonError(
                ErrorCode.UNKNOWN_TOOL,
                f"There is no tool {quote(name)}; there are: {', '.join(names) or 'none'}.",
            )
        if isinstance(arguments, str):
            raise invalid_params(
                f"The arguments of {name} are not a JSON object: {quote(arguments)}. Call it again"
                " with a whole one.",
            )
        if served is not None:
            try:
                check_value(served.parameters, arguments)
            except ValueError as error:
                raise invalid_params(f"{name} does not take that: {error}.") from error
            return PreparedCall(name, arguments, Permission.OWN, served=served)
        if offer is None:
            command = arguments.get("command")
            if not isinstance(command, str) or not command.strip():
                raise invalid_params(f"{SHELL!r} takes `command`, a string that is not empty.")
            return PreparedCall(SHELL, {"command": command}, Permission.OWN)
        tool = self.kernel.registry[offer.tool]
        return await self._prepare(offer, tool, arguments)

    async def _prepare(self, offer: _Offer, tool: Tool, said: Mapping[str, Any]) -> PreparedCall:
        untold = tool.params.model_fields.keys() - offer.params.split()
        if hidden := [name for name in said if name in untold]:
            raise invalid_params(f"{offer.name} does not take {', '.join(hidden)}.")
        arguments = {**offer.preset, **{key: one for key, one in said.items() if one is not None}}
        for key in _REFERENCES:
            if isinstance(arguments.get(key), str) and is_path(arguments[key]):
                arguments[key] = f"{self.context.id}/{arguments[key]}"
        if isinstance(blocks := arguments.get("blocks"), list):
            there = arguments.get("source", self.context.id)
            if any(str(one).startswith(FILE_PREFIX) for one in blocks):
                raise invalid_params(f"{offer.name} takes blocks of contexts, and found a file.")
            arguments["blocks"] = [f"{there}/{one}" if is_path(str(one)) else one for one in blocks]
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
        files = await self._find_files(tool, arguments)
        known, whole = self.kernel.files.is_known, ("file.list", "file.search")
        is_open = tool.name not in whole and all(map(known, files.values()))
        # What has not been opened yet is read with the owner's rights only.
        needs = tool.needs if is_open else Permission.OWN
        return PreparedCall(offer.name, arguments, needs, tool, files)

    async def _find_files(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, str]:
        """Return the files that arguments name; from now on they name them without links."""
        if tool.name == "file.patch":
            names = [one.path for one in split_patch(arguments["patch"])]
            return {name: await self._find_file(name) for name in names}
        files: dict[str, str] = {}
        if tool.name.startswith("file.") and "path" in arguments:
            found = arguments["path"] = await self._find_file(arguments["path"])
            files[found] = found
        for key in _REFERENCES:
            if isinstance(name := arguments.get(key), str) and name.startswith(FILE_PREFIX):
                path = FilePlace.parse(name).path
                found = await self._find_file(path)
                lines = name.removeprefix(f"{FILE_PREFIX}{path}")
                arguments[key] = f"{FILE_PREFIX}{found}{lines}"
                files[found] = found
        return files

    async def _find_file(self, path: str) -> str:
        """Return the path of a file without links.

        Raises:
            AntiphonError: invalid_params, if it is none of the project, or may be another file than
                it seems; permission_denied, if the model sees nothing of it.
        """
        return (await self.kernel.files.find_shown(path, self.model)).shown

    async def preview(self, actor: Actor, call: PreparedCall) -> str:
        """Return the difference that a call would make in files; empty if it changes none.

        Raises:
            AntiphonError: what the call would fail with.
        """
        assert call.tool is not None
        if call.tool.name == "file.create":
            (path,) = call.files.values()
            await self.kernel.files.check_free(path)
            return unified_diff("", call.arguments.get("content", ""), path)
        if call.tool.name not in _EDITS:
            return ""
        result = await self._call(actor, call, dry_run=True)
        return "".join(one["diff"] for one in result.get("files", [result]))

    def resume(self, call: PreparedCall) -> None:
        """Take the files of a call for read: it was asked about before the kernel was restarted."""
        for path in call.files.values():
            self.read.setdefault(path, None)

    async def run(self, actor: Actor, call: PreparedCall) -> str:
        """Run a call of a tool of the registry as the model; return its result as text.

        Raises:
            AntiphonError: what the tool can fail with.
        """
        assert call.tool is not None
        result = await self._call(actor, call)
        seen = await self._versions(call.tool, call.arguments, result)
        self.read.update(seen)
        if not call.reads:
            self._changed.update(seen)
        if call.tool.name.startswith("file."):
            return _file_text(result)
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

    async def _call(self, actor: Actor, call: PreparedCall, **more: Any) -> dict[str, Any]:
        assert call.tool is not None
        for name, path in call.files.items():
            if await self._find_file(name) != path:
                raise unusable(name, f"it was {quote(path)} a moment ago, and is another file now")
        arguments = {**call.arguments, **more}
        if call.tool.name in _EDITS:
            for path in call.files.values():
                await self._check_read(actor, call.name, path)
        if call.tool.name == "file.edit":
            arguments.setdefault("base_version", self.read.get(arguments["path"]))
        return await self.kernel.call(actor, call.tool.name, arguments)

    async def _check_read(self, actor: Actor, tool: str, path: str) -> None:
        """Raises AntiphonError stale_version, with its lines, if the model has not read a file."""
        if path in self.read:
            return
        try:
            found = await self.kernel.call(actor, "file.read", {"path": path})
        except AntiphonError:
            return  # there is none, or the tool says why
        self.read[path] = found["version"]
        raise AntiphonError(
            ErrorCode.STALE_VERSION,
            f"You had not read {quote(path)}, so nothing was changed. These are its lines as"
            f" they are now: decide again, and call {tool} once more.",
            version=found["version"],
            start_line=0,
            lines=split_lines(found["content"])[:_LINES_SHOWN],
            line_count=found["line_count"],
        )

    async def _versions(
        self, tool: Tool, arguments: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, int]:
        """Return the files that a call has read or changed, with the versions that it has seen."""
        if tool.name.startswith("file."):
            every = result.get("files", [result])
            return {one["path"]: one["version"] for one in every if "version" in one}
        if not isinstance(reference := arguments.get("block_id"), str):
            return {}
        context, block = await self.kernel.find_block(reference)
        path = self.kernel.files.path_of(context.id)
        version = result.get("version", context.blocks.version(block))
        return {path: version} if path is not None else {}

    async def save_changed(self) -> list[str]:
        """Save the files that the model has changed in this turn; return why some are not saved."""
        return await self.kernel.files.save_open(sorted(self._changed))

    async def end(self) -> None:
        """Save what the model has changed, if git is not at work: after that it saves itself."""
        if self._changed and await self.kernel.files.git.operation() is None:
            await self.save_changed()


_EDITS: Final = ("file.edit", "file.patch")

_LINES_SHOWN: Final = 200
"""Lines of a file that a refusal shows at most."""


def _file_text(result: Mapping[str, Any]) -> str:
    """Return what a tool for files has answered, as a model is told it."""
    match result:
        case {"files": [*files]}:
            return "\n".join(map(_file_text, files))
        case {"paths": [*paths]}:
            after = result.get("next_path")
            more = [f"[more: call again with after={after}]"] if after is not None else []
            return "\n".join([*paths, *more]) or "No file has such a path."
        case {"hits": [*hits]}:
            lines = [f"{one['path']}:{one['line']}: {one['text']}" for one in hits]
            more = ["[more lines match]"] if result["truncated"] else []
            return "\n".join([*lines, *more]) or "No line matches."
    head = {"path": "path", "version": "version", "lines": "line_count", "state": "state"}
    facts = [f"{name}: {result[key]}" for name, key in head.items() if result.get(key, "") != ""]
    facts += [f"found in it: {one}" for one in result.get("findings", ())]
    return "\n".join([*facts, "", result.get("content", result.get("diff", ""))])


def error_text(error: AntiphonError) -> str:
    """Return an error as a model is told it; of a stale edit with the lines as they are now."""
    known = {"tool", "allowed", "errors"}
    details = {k: v for k, v in error.details.items() if v is not None and k not in known}
    lines, first = details.pop("lines", None), details.get("start_line")
    said = [f"{error.code}: {error.message}"]
    if isinstance(lines, list) and isinstance(first, int):
        text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        said.append(number_lines(text, first).rstrip("\n"))
    elif lines is not None:
        details["lines"] = lines
    if details:
        said.append(json.dumps(details, ensure_ascii=False, default=str))
    return "\n".join(said)


_SHELL_DEFINITION: Final = ToolDefinition(
    SHELL,
    "Run a command in the project's root and return what it prints.",
    JsonObject(_object(command="string")),
)


@cache
def _definition(offer: _Offer, params: type) -> ToolDefinition:
    described = described_schema(params)
    known, shared = described.get("properties", {}), described.get("$defs", {})
    about, names = {**_ABOUT, **offer.about}, offer.params.split()
    properties = {
        key: {
            **(offer.schemas.get(key) or _plain(known[key], shared)),
            **({"description": about[key]} if key in about else {}),
        }
        for key in names
    }
    required = [
        key for key in described.get("required", ()) if key in names and key not in offer.preset
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
