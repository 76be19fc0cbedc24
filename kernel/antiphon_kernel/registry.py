"""Tools: defined once, called from everywhere.

A tool is a typed request, a typed result, a docstring and a handler. Requests are strict: an
unknown field, a number where a string belongs, or half a surrogate pair is an error that names the
field, in words that name it as the caller does. Docstrings under fields describe them: they are not
there at run time, so they are read from the source, and only when somebody asks for a JSON Schema.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, ClassVar, Final, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.json_validation import has_whole_characters
from antiphon_kernel.types.quoting import LISTED, quote, truncate
from antiphon_kernel.types.roles import Permission


class Params(BaseModel):
    """Base of every request."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class NoParams(Params):
    """Nothing to say."""


class ContextParams(Params):
    """A context."""

    context: str | None = None


class BlockParams(Params):
    """A block."""

    block_id: str


class TextParams(BlockParams):
    """Text of a block."""

    section: str | None = None


class Result(BaseModel):
    """Base of every result."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    record: ClassVar[type | None] = None
    """The dataclass whose fields it shows, docstrings included; None if it has only its own."""


EVERY_CALL: Final = (
    ErrorCode.INVALID_PARAMS,
    ErrorCode.PERMISSION_DENIED,
    ErrorCode.STORAGE_FAILED,
    ErrorCode.NO_KERNEL,
)
"""The errors of every call."""

REFERENCES: Final = (
    ErrorCode.BLOCK_NOT_FOUND,
    ErrorCode.CONTEXT_NOT_FOUND,
    ErrorCode.AMBIGUOUS_ID,
)
"""The errors of a call that names a block or a context."""

_ENCODER: Final = json.JSONEncoder(allow_nan=False)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as callers see it."""

    name: str
    params: type[Params]
    result: type[Result]
    handler: Callable[[Any, Any], Awaitable[Result]]
    doc: str
    needs: Permission
    """The permission that the caller needs at least; the handler may ask for more."""
    errors: tuple[ErrorCode, ...]
    """Its errors, besides those of every call."""

    def parse(self, params: Mapping[str, Any]) -> Params:
        """The request as a value.

        Raises:
            AntiphonError: invalid_params, naming every wrong field.
        """
        try:
            # JSON mode: strict types, but enums from their strings and no lone surrogates.
            return self.params.model_validate_json(_ENCODER.encode(params), strict=True)
        except ValidationError as error:
            field = next(map(truncate, _half_surrogates("", params)), None)
            if field is not None:
                raise invalid_params(
                    f"{self.name} cannot take half a surrogate pair, which is in"
                    f" {field or 'the names of its parameters'}: send whole characters.",
                    tool=self.name,
                    field=field or "parameters",
                    expected="whole characters",
                ) from error
            raise param_error(self.name, self.params, params, error) from error
        except (TypeError, ValueError) as error:
            raise invalid_params(f"The parameters of {self.name} are not JSON: {error}.") from error
        except RecursionError as error:
            raise invalid_params(
                f"The parameters of {self.name} are nested too deeply: send flatter ones.",
                tool=self.name,
            ) from error


def tool(
    name: str, *, needs: Permission, errors: Iterable[ErrorCode] = ()
) -> Callable[[Callable[[C, P], Awaitable[R]]], Tool]:
    """Make a tool of ``async def handler(call, params: P) -> R``; its docstring is the tool's."""

    def define(handler: Callable[[C, P], Awaitable[R]]) -> Tool:
        hints = get_type_hints(handler)
        doc = inspect.getdoc(handler) or ""
        return Tool(
            name, hints["params"], hints["return"], handler, doc, needs, (*errors, *EVERY_CALL)
        )

    return define


def tools_of(*modules: ModuleType) -> tuple[Tool, ...]:
    """Return the tools that modules define, in the order in which they do."""
    return tuple(
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, Tool) and one.handler.__module__ == module.__name__
    )


class Registry(dict[str, Tool]):
    """Every tool of a kernel, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        named = [(one.name, one) for one in tools]
        super().__init__(named)
        assert len(self) == len(named), "two tools have the same name"

    @property
    def names(self) -> list[str]:
        return sorted(self)

    def __missing__(self, name: str) -> Tool:
        """Raises AntiphonError unknown_tool."""
        raise AntiphonError(
            ErrorCode.UNKNOWN_TOOL,
            f"There is no tool {quote(name)}.{did_you_mean(name, self)} `kernel.tools` lists the"
            f" {len(self)} that there are.",
            tool=truncate(name),
            allowed=self.names,
        )


_LOOKED_AT: Final = 1_000
"""Complaints of the validator that are read at most."""

UNKNOWN_NAME: Final = "nothing of this name"
"""Expectation of a field that nobody knows."""

_NOTHING: Final = object()

_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "enum": "{expected}",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "something that matches {pattern}",
    "string_too_long": "at most {max_length} code points",
    "string_too_short": "at least {min_length} code points",
    "string_type": "a string",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
    "tuple_type": "a list",
    "union_tag_invalid": "{expected_tags} as its {discriminator}",
    "union_tag_not_found": "an object with {discriminator}",
}


def param_error(
    tool: str, params: type[BaseModel], sent: Mapping[str, Any], error: ValidationError
) -> AntiphonError:
    """Return the error of a tool for the parameters `sent`, which it cannot take.

    Its field `errors` lists what is wrong, as `field`, `expected` and `found`.
    """
    names = [field.alias or name for name, field in params.model_fields.items()]
    wrong = _suggestions(_wrong(one, sent) for one in error.errors(include_url=False)[:_LOOKED_AT])
    first = wrong[0]
    if first.kind == "missing":
        said = f"{tool} needs {first.field}, which is missing."
    elif first.kind == "extra_forbidden":
        said = f"{tool} does not know {first.field}.{did_you_mean(first.field, names)}"
    else:
        said = f"{tool} cannot take {first.field} = {first.found}: expected {first.expected}."
    takes = f"It takes: {', '.join(names)}." if names else "It takes no parameters."
    errors = [one.as_json() for one in wrong[:LISTED]]
    return invalid_params(
        f"{said} {takes}",
        tool=tool,
        errors=errors,
        allowed=errors[0].get("allowed"),
    )


def _half_surrogates(field: str, value: object) -> Iterator[str]:
    """The fields in what was sent that have half a surrogate pair; what has such names as well."""
    if (isinstance(value, str) and not has_whole_characters(value)) or (
        isinstance(value, Mapping) and not all(map(has_whole_characters, map(str, value)))
    ):
        yield field
    elif isinstance(value, Mapping | list | tuple):
        for name, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _half_surrogates(f"{field}.{name}" if field else str(name), one)


@dataclass(frozen=True, slots=True)
class _Wrong:
    """One thing that is wrong; `kind` is what the validator calls it."""

    path: tuple[str, ...]
    kind: str
    expected: str
    found: str
    allowed: tuple[str, ...] = ()
    """The values there are, if they can be counted."""

    def as_json(self) -> dict[str, Any]:
        fields = {"field": self.field, "expected": self.expected, "found": self.found}
        return {**fields, "allowed": list(self.allowed)} if self.allowed else fields

    @property
    def field(self) -> str:
        return truncate(".".join(self.path)) or "parameters"


def _wrong(one: Mapping[str, Any], sent: Mapping[str, Any]) -> _Wrong:
    kind = one["type"]
    path = _path(one, sent)
    if kind == "missing":
        return _Wrong(path, kind, "a value", "nothing")
    found = truncate(json.dumps(one["input"], default=str, ensure_ascii=True))
    if kind == "extra_forbidden":
        return _Wrong(path, kind, UNKNOWN_NAME, found)
    template = _EXPECTED.get(kind)
    said: str = one["msg"]
    about = one.get("ctx", {})
    expected = template.format(**about) if template else said[:1].lower() + said[1:]
    listed = about.get("expected", about.get("expected_tags", ""))
    return _Wrong(path, kind, truncate(expected), found, tuple(re.findall("'([^']*)'", listed)))


def _path(one: Mapping[str, Any], sent: object) -> tuple[str, ...]:
    """The keys and indexes that lead to what is wrong in what was sent.

    Between them the validator names which of several forms it tried: a caller knows none of them.
    """
    place, wrong, is_missing = one["loc"], one["input"], one["type"] == "missing"
    path: list[str] = []
    at = sent
    for number, part in enumerate(place, 1):
        inside: object = _NOTHING
        if isinstance(at, Mapping):
            inside = at.get(str(part), _NOTHING)
        elif isinstance(at, list) and isinstance(part, int) and part < len(at):
            inside = at[part]
        ends_here = is_missing and number == len(place)
        if ends_here or isinstance(inside, Mapping | list) or inside == wrong:
            path.append(str(part))
            at = inside
    return tuple(path)


def _suggestions(wrong: Iterable[_Wrong]) -> list[_Wrong]:
    """One entry for each field, and none for a form that what was sent does not even begin like."""
    by_path: dict[tuple[str, ...], _Wrong] = {}
    for one in wrong:
        known = by_path.get(one.path)
        if known is None:
            by_path[one.path] = one
        elif one.expected not in known.expected.split(" or "):
            expected = truncate(f"{known.expected} or {one.expected}")
            allowed = (*known.allowed, *one.allowed)
            by_path[one.path] = replace(known, expected=expected, allowed=allowed)
    above = {path[:length] for path in by_path for length in range(len(path))}
    return [one for path, one in by_path.items() if path not in above]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question to add to what is said of an unknown name; empty if none is like it."""
    close = get_close_matches(name, tuple(names))
    # Letters that have changed places are the likeliest of mistakes.
    best = min(close, key=lambda one: sorted(one) != sorted(name), default=None)
    return f" Did you mean {best}?" if best is not None else ""


COMMON: Final[dict[str, str]] = {
    "block_id": "The block: full id, `context.name.number`, either with the parts cut short, or a"
    " path that `context.layout` shows.",
    "name": "The block by the names of its parts, like `default.aria.12`.",
    "parent_name": "The parent by the names of its parts.",
    "result_name": "The result by the names of its parts.",
    **dict.fromkeys(("next_name", "message_name"), "The same block by the names of its parts."),
    **dict.fromkeys(
        ("undone_names", "blocks_names", "changed_names", "created_names", "deleted_names"),
        "The same blocks by the names of their parts.",
    ),
    "context": "Label or id of the context; the default context if absent.",
    "context_id": "Id of the context.",
    "context_version": "The version of the context after this: the journal's `seq`.",
    "version": "The version of the block: how often it has changed, 1 at creation.",
    "principal": "Id of the principal.",
    "username": "Name of the principal.",
    "dry_run": "Say what would change, and change nothing.",
    "path": "Relative to the project's root, with `/`.",
    "line_numbers": "Put number and tab before each line; without, `content` is exactly the text.",
    "reason": "Message to the principal.",
    "last": "Value of `after` for the next call.",
    "drift_id": "Id of the drift.",
    "display_name": "How it wants to be called; the username unless it was set.",
    "ended": "How many connections were ended.",
    "fingerprint": "Fingerprint of the key: `SHA256:…`, as OpenSSH prints it.",
    "label": "Name of the context.",
    "created": "When it was made: ISO 8601, UTC, milliseconds.",
    "time": "When it happened: ISO 8601, UTC, milliseconds.",
    "role": "The part it plays in the conversation.",
    "kind": "The kind of block.",
    "status": "The status of the block: `done` and `error` are final.",
    "truncated": "Whether there is more than this.",
    "exit_code": "How the command ended: 0 well, else not.",
    "is_error": "Whether what it says is an error.",
    "stop_reason": "Why it ended, `interrupted` for one.",
    "stopped_by": "Username of whoever stopped it.",
    "expected_text": "What the lines must say for this to happen; whatever they say if absent.",
    "section": "The text of the block: path of a section or of a text field; its only one if"
    " absent.",
    "undone": "Ids of the blocks whose text changed.",
    "session": "Id of the session.",
    "expires": "When it stops to let anybody in; absent: never.",
    "op": "Kind of the operation.",
    "operation": "Operation: create, append, edit, splice, sync (typed by a connected client), ...",
    "after_block": "Go on after this block: the `next` of the previous answer.",
    "after_version": "Go on after this version: the `next` of the previous answer.",
}
"""The meaning of a field of this name wherever no docstring says it more exactly."""


@cache
def described_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema of a model; where its source is not at hand, without the descriptions."""
    model.model_rebuild()  # of two threads that do this at once, none sees it half done
    return model.model_json_schema(schema_generator=_DescribedSchema)


def own_field_docs(record: type) -> dict[str, str]:
    """Return the docstrings of the fields that a class names itself, each as one line."""
    return _class_docs(record.__module__).get(record.__qualname__, {})


class _DescribedSchema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model: type[BaseModel] = schema["cls"]
        bases = [one for one in reversed(model.__mro__) if issubclass(one, BaseModel)]
        record: type | None = getattr(model, "record", None)
        classes = [one for one in (record, *bases) if one not in (None, BaseModel)]
        names = {name: field.alias or name for name, field in model.model_fields.items()}
        return _described(super().model_schema(schema), classes, names)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _described(super().dataclass_schema(schema), [schema["cls"]], {})


def _described(
    generated: JsonSchemaValue, classes: Iterable[Any], names: Mapping[str, str]
) -> JsonSchemaValue:
    """Describe properties by the docstrings of fields, or what a name means everywhere."""
    docs = dict(COMMON)
    for one in classes:
        docs |= own_field_docs(one)
    for field, doc in docs.items():
        if (shown := generated.get("properties", {}).get(names.get(field, field))) is not None:
            shown.setdefault("description", doc)
    return generated


_PARSING: Final = threading.Lock()
"""Held while a syntax tree is made: Python 3.11 fails if two threads make one at the same time."""


@cache
def _class_docs(module: str) -> Mapping[str, dict[str, str]]:
    """By class, by field."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    with _PARSING:
        tree = ast.parse(source)
    return {
        node.name: _field_docs(node.body) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _field_docs(body: list[ast.stmt]) -> dict[str, str]:
    docs = {}
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            if isinstance(below.value.value, str):
                docs[field.target.id] = " ".join(below.value.value.split())
    return docs
