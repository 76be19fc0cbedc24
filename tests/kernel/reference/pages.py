"""All generated pages: one a tool, their index, errors, limits, the error of token estimates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.registry import EVERY_CALL, Registry, Tool, described_schema, own_field_docs
from antiphon_kernel.server.limits import DEFAULT_SERVER_LIMITS
from antiphon_kernel.server.rpc import HTTP_STATUS
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.messages.token_errors import tokens_page
from tests.kernel.reference.error_catalogue import CATALOGUE, DO_NOT_EDIT
from tests.kernel.reference.examples import (
    ALL_TOOLS,
    FOLDER,
    OWNER,
    Played,
    as_json,
    play,
    read_example,
)

Schema = Mapping[str, Any]


def render_tool(tool: Tool, played: Played) -> str:
    return "\n".join(_lines(tool, played)) + "\n"


def _lines(tool: Tool, played: Played) -> Iterator[str]:
    yield DO_NOT_EDIT
    yield f"# {tool.name}\n"
    yield f"{tool.doc}\n"
    yield f"Needs the right to **{tool.needs}**.\n"
    for title, model in (("Parameters", tool.params), ("Result", tool.result)):
        schema = described_schema(model)
        defs = schema.get("$defs", {})
        yield from _model(title, schema, defs, level=2, asked=model is tool.params)
    yield "## Errors\n"
    own = [code for code in tool.errors if code not in EVERY_CALL]
    if own:
        yield "| code | when |"
        yield "|---|---|"
        for code in own:
            yield f"| [`{code}`](../errors.md#{code}) | {CATALOGUE[code].when} |"
        yield ""
    every = ", ".join(f"[`{code}`](../errors.md#{code})" for code in EVERY_CALL)
    yield f"{'Also e' if own else 'E'}rrors of every call: {every}.\n"
    yield from _example(tool.name, played)


def _model(
    title: str, schema: Schema, defs: Mapping[str, Schema], level: int, *, asked: bool
) -> Iterator[str]:
    """A table of fields; what is asked for has defaults, what is answered may be absent."""
    yield f"{'#' * level} {title}\n"
    yield f"{schema['description']}\n"
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if properties:
        yield "| name | type | default | meaning |" if asked else "| name | type | meaning |"
        yield "|---|---|---|---|" if asked else "|---|---|---|"
        for name, one in properties.items():
            cells = [f"`{name}`", type_text(one, defs), *_default(name, one, schema, asked)]
            yield "| " + " | ".join([*cells, _escaped(one.get("description", ""))]) + " |"
        yield ""
    for name, one in schema.get("$defs", {}).items():
        if "properties" in one:
            yield from _model(name, one, defs, level=3, asked=asked)


def _default(name: str, one: Schema, schema: Schema, asked: bool) -> Iterator[str]:
    if not asked:
        return
    if name in schema.get("required", ()):
        yield "required"
    elif one.get("default") is None:
        yield "absent"
    else:
        yield f"`{json.dumps(one['default'], ensure_ascii=False)}`"


def type_text(one: Schema, defs: Mapping[str, Schema]) -> str:
    """A JSON Schema in words."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        if "properties" in defs[name]:
            return f"[{name}](#{name.lower()})"
        return type_text(defs[name], defs)
    if "const" in one:
        return f"`{json.dumps(one['const'])}`"
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    for union in ("anyOf", "oneOf"):
        if union in one:
            parts = [type_text(part, defs) for part in one[union] if part.get("type") != "null"]
            return ", ".join(parts[:-1]) + " or " + parts[-1] if len(parts) > 1 else parts[0]
    kind = one.get("type")
    if kind == "array":
        return f"list of {type_text(one.get('items', {}), defs)}"
    if kind == "object":
        values = one.get("additionalProperties")
        return f"object of {type_text(values, defs)}" if isinstance(values, dict) else "object"
    if kind in ("integer", "number"):
        return kind + _bounds(one, "minimum", "maximum", "")
    if kind == "string":
        pattern = f", matching `{_escaped(one['pattern'])}`" if "pattern" in one else ""
        return "string" + _bounds(one, "minLength", "maxLength", " code points") + pattern
    return str(kind) if kind is not None else "any JSON"


def _bounds(one: Schema, least: str, most: str, unit: str) -> str:
    low, high = one.get(least), one.get(most)
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    if low is not None:
        return f", at least {low}{unit}"
    return f", at most {high}{unit}" if high is not None else ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _example(name: str, played: Played) -> Iterator[str]:
    yield "## Example\n"
    if played.example.given:
        yield "Given\n"
        yield "```json"
        for call in played.example.given:
            yield json.dumps(_spoken(call.caller, call.tool, call.params), ensure_ascii=False)
        yield "```\n"
    for shown, answer in zip(played.example.shows, played.answers, strict=True):
        yield f"{shown.says}\n"
        yield "```json"
        yield as_json(_spoken(shown.caller, name, shown.params))
        yield "```\n"
        yield "is answered\n"
        yield "```json"
        yield as_json(answer)
        yield "```\n"


def _spoken(caller: str, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
    who = {"as": caller} if caller != OWNER else {}
    return {**who, "tool": tool, "params": params}


DOCS = Path(__file__).parents[3] / "docs"


def tools_of(registry: Registry) -> list[Tool]:
    return [registry[name] for name in registry.names]


async def all_pages(failures: list[str]) -> dict[Path, str]:
    """Every page under docs/ that is generated, by its path there.

    Tools without an example, or with one that does not play, have no page: `failures` says why.
    """
    pages = {
        Path("tools/README.md"): index_page(),
        Path("errors.md"): errors_page(),
        Path("limits.md"): limits_page(),
        Path("tokens.md"): tokens_page(),
    }
    for tool in tools_of(ALL_TOOLS):
        example = read_example(tool.name)
        if example is None:
            failures.append(f"{tool.name} has no example: write {FOLDER / tool.name}.json")
            continue
        try:
            pages[Path(f"tools/{tool.name}.md")] = render_tool(tool, await play(tool.name, example))
        except AssertionError as error:
            failures.append(f"the example of {tool.name} does not play: {error}")
    return pages


def stale_pages() -> set[Path]:
    """Pages that are there and that nothing generates any more."""
    there = {path.relative_to(DOCS) for path in (DOCS / "tools").glob("*.md")}
    return there - {Path(f"tools/{name}.md") for name in (*ALL_TOOLS.names, "README")}


def index_page() -> str:
    return "\n".join(_index()) + "\n"


def errors_page() -> str:
    return "\n".join(_errors()) + "\n"


def limits_page() -> str:
    return "\n".join(_limits()) + "\n"


def limits() -> dict[str, object]:
    """Every limit there is, by the name that an error gives it."""
    return {**DEFAULT_LIMITS.model_dump(), **asdict(DEFAULT_SERVER_LIMITS)}


def _limits() -> Iterator[str]:
    yield DO_NOT_EDIT
    yield "# Limits\n"
    yield (
        "A call that exceeds a limit on sizes or numbers fails with"
        " [`too_large`](errors.md#too_large). Its `limit_name` is a name of these tables, and its"
        " `limit` is the value. Text is counted in code points, and times are in seconds.\n"
    )
    for title, record in (
        ("Calls, updates and blocks", DEFAULT_LIMITS),
        ("Connections", DEFAULT_SERVER_LIMITS),
    ):
        docs = own_field_docs(type(record))
        yield f"## {title}\n"
        yield "| name | limit | meaning |"
        yield "|---|---|---|"
        for name, meaning in docs.items():
            yield f"| `{name}` | {getattr(record, name):,} | {meaning} |"
        yield ""


def _index() -> Iterator[str]:
    yield DO_NOT_EDIT
    yield "# Tools\n"
    yield (
        "These are all tools of a kernel, the same through every endpoint: `antiphon call`,"
        " POST `/call/TOOL`, frames on `/call`, and in process. Requests are strict: an unknown"
        " field or a value of the wrong type is an error that names it. Fields of results that do"
        " not apply are absent, never null.\n"
    )
    yield (
        "Positions in text are code points or lines; both count from 0, and ends are exclusive. A"
        " line ends at `\\n`. An id may be given as it was returned, by its"
        " name (`default.amy.12`), or by the first or last digits of each part, if only one id"
        " fits.\n"
    )
    yield (
        "In the examples the kernel belongs to amy. bo and cleo are people with the role of an"
        " editor, and aria is a model. `as` beside a call says who makes it; if absent, amy.\n"
    )
    yield "| tool | needs | does |"
    yield "|---|---|---|"
    for tool in tools_of(ALL_TOOLS):
        first = tool.doc.split("\n\n")[0].replace("\n", " ")
        yield f"| [{tool.name}]({tool.name}.md) | {tool.needs} | {first} |"
    yield ""
    yield "All errors: [errors.md](../errors.md)."


def _errors() -> Iterator[str]:
    yield DO_NOT_EDIT
    yield "# Errors\n"
    yield (
        "A failed call is answered with `{code, message, …}`. `code` is one of these; `message` is"
        " one sentence that says what was expected, what was found and what to do; the others are"
        " machine fields. The codes are the same for every caller, and there are no others. A"
        " failed call has changed nothing.\n"
    )
    yield "| code | HTTP | when |"
    yield "|---|---|---|"
    for code in ErrorCode:
        status = HTTP_STATUS.get(code, 400)
        yield f"| [`{code}`](#{code}) | {status} | {CATALOGUE[code].when} |"
    yield ""
    for code in ErrorCode:
        yield from _error(code)


def _error(code: ErrorCode) -> Iterator[str]:
    meaning = CATALOGUE[code]
    yield f"## {code}\n"
    yield f"{meaning.when}\n"
    if meaning.fields:
        yield "| field | holds |"
        yield "|---|---|"
        for name, holds in meaning.fields.items():
            yield f"| `{name}` | {holds} |"
        yield ""
    if code in EVERY_CALL:
        yield "Every call can fail with it.\n"
        return
    tools = [tool.name for tool in tools_of(ALL_TOOLS) if code in tool.errors]
    if tools:
        yield "From " + ", ".join(f"[{name}](tools/{name}.md)" for name in tools) + ".\n"
