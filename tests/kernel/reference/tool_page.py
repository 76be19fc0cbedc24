"""The page of one tool, from its registry entry and its example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from antiphon_kernel.registry import EVERY_CALL, Tool, described_schema
from tests.kernel.reference.error_catalogue import CATALOGUE
from tests.kernel.reference.examples import OWNER, Played, as_json

Schema = Mapping[str, Any]
DO_NOT_EDIT = "<!-- Generated from the registry: `make docs`. -->\n"


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
    yield f"{'And w' if own else 'W'}hat every call can fail with: {every}.\n"
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
