"""`make api-check`: semantic versioning of the tools against the last release.

python -m tests.kernel.reference.api_check
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.registry import Registry
from antiphon_kernel.subscriptions import BlockEvent
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.reference.examples import ALL_TOOLS

ROOT = Path(__file__).parents[3]
RELEASES = ROOT / "tests" / "released"
API_FILE = "api.json"

Schema = Mapping[str, Any]
Change = tuple[bool, str]
"""Whether callers break, and what is other."""

_NEEDED = " has to be given"
_UPPER, _LOWER = ("maxItems", "maxLength", "maximum"), ("minItems", "minLength", "minimum")
_DEMANDS = (_NEEDED, *_UPPER, *_LOWER)


def api_of(registry: Registry) -> dict[str, Schema]:
    """Return the tools as callers see them, without words for people, and the events."""
    event = _plain(BlockEvent.model_json_schema())
    events = {"parameters": {}, "result": event, "errors": [*ErrorCode], "needs": "read"}
    tools = {
        tool.name: {
            "parameters": _plain(tool.params.model_json_schema()),
            "result": _plain(tool.result.model_json_schema()),
            "errors": sorted(tool.errors),
            "needs": tool.needs,
        }
        for tool in map(registry.__getitem__, registry.names)
    }
    return {"events": events, **tools}


def _plain(one: Any, are_names: bool = False) -> Any:
    if isinstance(one, dict):
        left_out = () if are_names else ("default", "description", "discriminator", "title")
        inner = () if are_names else ("$defs", "properties")
        return {key: _plain(one[key], key in inner) for key in one if key not in left_out}
    return [_plain(each) for each in one] if isinstance(one, list) else one


def facts_of(api: Mapping[str, Schema]) -> dict[str, float]:
    """Return what callers rely on, as sentences; with the number of a limit, else 0."""
    facts = dict[str, float]()
    for name, tool in api.items():
        facts |= {name: 0, f"{name} needs the right to {tool['needs']}": 0}
        facts |= {f"{name} fails with {code}": 0 for code in tool["errors"]}
        for part in ("parameters", "result"):
            schema = tool[part]
            facts |= _described(f"{part} of {name}", schema, schema.get("$defs", {}), ())
    return facts


def _described(
    path: str, schema: Schema, defs: Schema, within: tuple[str, ...]
) -> Iterator[tuple[str, float]]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in within:  # else it is in itself
            yield from _described(path, defs[name], defs, (*within, name))
        return
    choices = schema.get("anyOf", schema.get("oneOf", ()))
    for one in choices:
        yield from _described(path, one, defs, within)
    kind = schema.get("type", "any")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    yield from ((f"{path}: {kind} = {value}", 0) for value in values)
    if not values and not choices:
        yield f"{path}: {kind}", 0
    is_asked = path.startswith("parameters")
    for name, one in schema.get("properties", {}).items():
        yield from _described(f"{path}, {name}", one, defs, within)
        if name in schema.get("required", ()):
            yield f"{path}, {name}{_NEEDED if is_asked else ' is always there'}", 0
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from _described(f"{path}[]", schema[inner], defs, within)
    limits = (*_UPPER, *_LOWER) if is_asked else ()
    yield from ((f"{path} {limit}", schema[limit]) for limit in limits if limit in schema)


def changes(before: Mapping[str, float], after: Mapping[str, float]) -> Iterator[Change]:
    for fact in sorted(before.keys() - after.keys()):
        # What need not be given any more, a limit less, any value in the place of some.
        yield not (fact.endswith(_DEMANDS) or fact.partition(" = ")[0] in after), f"gone: {fact}"
    for fact in sorted(after.keys() - before.keys()):
        # Only what was there can ask for more than before.
        place = fact.rpartition(", " if fact.endswith(_NEEDED) else " ")[0]
        was_there = any(one.startswith(f"{place}: ") for one in before)
        yield fact.endswith(_DEMANDS) and was_there, f"new: {fact}"
    for fact in sorted(before.keys() & after.keys()):
        if grown := after[fact] - before[fact]:
            yield (grown > 0) == fact.endswith(_LOWER), f"now {after[fact]}: {fact}"


def kind_of(found: list[Change]) -> str:
    return "major" if any(breaks for breaks, _ in found) else "minor" if found else "patch"


def is_allowed(kind: str, then: str, now: str) -> bool:
    """Return whether a version may have changes of a kind since another one."""
    part = {"major": 1, "minor": 2, "patch": 0}[kind]
    return part == 0 or _parts(now)[:part] > _parts(then)[:part]


def version_here() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def since_release() -> tuple[list[Change], str, str]:
    """Return the changes since the last release, its version, and the version here."""
    last = max(RELEASES.glob(f"*/{API_FILE}"), key=lambda path: _parts(path.parent.name))
    then = json.loads(last.read_text("utf-8"))
    found = list(changes(facts_of(then["tools"]), facts_of(api_of(ALL_TOOLS))))
    return found, then["version"], version_here()


def main() -> None:
    found, then, now = since_release()
    for breaks, what in sorted(found, reverse=True):
        sys.stdout.write(f"{'breaks' if breaks else 'adds  '}  {what}\n")
    kind = kind_of(found)
    sys.stdout.write(f"{kind} changes since {then}; this is {now}\n")
    sys.exit(0 if is_allowed(kind, then, now) else 1)


if __name__ == "__main__":
    main()
