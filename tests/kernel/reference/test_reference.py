"""The generated pages are what the registry and a real kernel say now.

Ids in requests and answers go by their names too, in every tool.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Result, described_schema
from antiphon_kernel.subscriptions import BlockEvent
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.reference.error_catalogue import CATALOGUE
from tests.kernel.reference.examples import ALL_TOOLS, FOLDER, play, read_example
from tests.kernel.reference.pages import (
    DOCS,
    errors_page,
    index_page,
    limits,
    limits_page,
    render_tool,
    stale_pages,
)

ROOT = DOCS.parent


@cache
def sources() -> dict[str, str]:
    """Return the texts of all modules, by the names of their files."""
    files = (*ROOT.glob("kernel/**/*.py"), *ROOT.glob("app/**/*.py"))
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in files}


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse(sources()[path])


def trees(pattern: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the names and syntax trees of modules whose text has the pattern."""
    for path, text in sources().items():
        if re.search(pattern, text):
            yield path, parsed(path)


RUN_MAKE_DOCS = "it is not what the registry says now: run make docs"


def test_every_tool_has_an_example_and_every_example_a_tool() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == ALL_TOOLS.names


def test_index_and_the_errors_are_up_to_date() -> None:
    assert (DOCS / "tools" / "README.md").read_text("utf-8") == index_page(), RUN_MAKE_DOCS
    assert (DOCS / "errors.md").read_text("utf-8") == errors_page(), RUN_MAKE_DOCS
    assert (DOCS / "limits.md").read_text("utf-8") == limits_page(), RUN_MAKE_DOCS
    assert stale_pages() == set(), RUN_MAKE_DOCS


def test_the_limits_page_says_what_each_limit_is_of() -> None:
    told = {line.split("`")[1] for line in limits_page().splitlines() if line.startswith("| `")}
    assert told == limits().keys()


def test_every_too_large_error_names_a_limit_of_the_page() -> None:
    names: list[str] = []
    for path, tree in trees(r"\bTOO_LARGE\b|\bcheck_limit\("):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            if any(ast.unparse(one) == "ErrorCode.TOO_LARGE" for one in node.args[:1]):
                given = {one.arg: one.value for one in node.keywords}
                assert "limit_name" in given, f"{path}:{node.lineno}"
                named: ast.expr = given["limit_name"]
            elif ast.unparse(node.func) == "check_limit":
                named = node.args[2]
            else:
                continue
            if isinstance(named, ast.Constant):
                names.append(str(named.value))
    assert len(names) > 12 and set(names) <= limits().keys()


def test_every_field_of_the_errors_page_is_sent() -> None:
    """The fields that a helper adds to errors of any code are named by a keyword of its own."""
    by_code = set(fields_given())
    text = "\n".join(sources().values())
    named = {*re.findall(r"\b(\w+)=", text), *re.findall(r"[{\[ ]\"(\w+)\"[:\]]", text)}
    never = [
        f"{code}: {field}"
        for code, meaning in CATALOGUE.items()
        for field in meaning.fields
        if (code, field) not in by_code and field not in named
    ]
    assert never == []


def test_every_error_has_a_meaning() -> None:
    assert list(CATALOGUE) == list(ErrorCode)


def test_every_machine_field_of_an_error_is_in_the_catalogue() -> None:
    unknown = [
        f"{code}: {field}" for code, field in fields_given() if field not in CATALOGUE[code].fields
    ]
    assert unknown == []


@cache
def fields_given() -> list[tuple[ErrorCode, str]]:
    """The keywords of `AntiphonError(ErrorCode.X, …, field=…)`, `invalid_params(…, field=…)`, …"""
    return [
        (code, one.arg)
        for _, tree in trees(r"\b(AntiphonError|invalid_params|permission_denied)\(")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (code := code_of(node)) is not None
        for one in node.keywords
        if one.arg is not None
    ]


def code_of(call: ast.Call) -> ErrorCode | None:
    """Return the code of the error that a call makes; None if it makes none."""
    match call:
        case ast.Call(ast.Name("AntiphonError"), [ast.Attribute(attr=name), *_]):
            return ErrorCode[name]
        case ast.Call(ast.Name("invalid_params" | "permission_denied" as code)):
            return ErrorCode(code)
    return None


def test_every_field_of_requests_and_results_says_what_it_means() -> None:
    silent = []
    tools = [ALL_TOOLS[name] for name in ALL_TOOLS.names]
    for model in {model for tool in tools for model in (tool.params, tool.result)}:
        schema = described_schema(model)
        for title, one in {model.__name__: schema, **schema.get("$defs", {})}.items():
            if not one.get("description"):
                silent.append(title)
            fields = one.get("properties", {}).items()
            silent += [f"{title}.{field}" for field, said in fields if "description" not in said]
    assert silent == [], "put a docstring under each"


BLOCK = re.compile(r"[0-9a-f]{32}\.[0-9a-f]{32}\.[0-9]+")
NAME = re.compile(r"[a-z0-9_-]+\.[a-z0-9_-]+\.[0-9]+")
TAKES_ENDS = re.compile(r'"[a-z0-9_-]+\.[a-z0-9_-]+\.[0-9]+"|"(context|principal)":')
OTHER_IDS = {"context_id", "drift_id", "tool_call_id", "turn_id"}
ELSEWHERE = {"source_block"}
"""Fields of the document that name a block of another context, which may be gone."""
AUTHORS = {"author", "creator", "principal"}


def name_of(field: str) -> str:
    """The field that holds the name of the block in another field."""
    if field == "block_id":
        return "name"
    return f"{field.removesuffix('_id')}_name"


def results(of: Any, seen: set[type[Result]]) -> None:
    """Add every model that an answer of this type holds."""
    if isinstance(of, type) and issubclass(of, Result):
        if of not in seen:
            seen.add(of)
            for field in of.model_fields.values():
                results(field.annotation, seen)
    for part in get_args(of):
        results(part, seen)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in an answer."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from objects(part)


def test_every_result_with_a_block_id_has_a_field_for_its_name() -> None:
    models: set[type[Result]] = {BlockEvent}
    for name in ALL_TOOLS.names:
        results(ALL_TOOLS[name].result, models)
    assert len(models) > 40
    for model in models:
        fields = model.model_fields
        text = {name for name, field in fields.items() if "str" in str(field.annotation)}
        ids = {one for one in text if one.endswith("_id")} - OTHER_IDS
        missing = {name_of(one) for one in ids | ({"next"} & text)} - fields.keys()
        assert not missing, model
        assert "undone" not in fields or "undone_names" in fields
        assert not AUTHORS & fields.keys() or "username" in fields, model


def check_names(answer: dict[str, Any]) -> None:
    """Check that an answer names every block and author in it."""
    for found in objects(answer) if "error" not in answer else ():
        for field, value in found.items():
            if isinstance(value, str) and BLOCK.fullmatch(value) and field not in ELSEWHERE:
                assert NAME.fullmatch(found[name_of(field)]), (field, found)
            if isinstance(value, list) and any(BLOCK.fullmatch(str(one)) for one in value):
                assert len(found[f"{field}_names"]) == len(value)
            if field in AUTHORS:
                assert "username" in found, found


def with_ends(kernel: Kernel, value: Any, field: str = "") -> Any:
    """Put the ends of ids in place of names."""
    contexts = {row.label: row.id for row in kernel.contexts.rows()}
    people = {one.username: one.id for one in kernel.members}
    if isinstance(value, dict):
        changed = {with_ends(kernel, key): key for key in value}
        return {new: with_ends(kernel, value[key], key) for new, key in changed.items()}
    if isinstance(value, list):
        return [with_ends(kernel, one, field) for one in value]
    if isinstance(value, str) and NAME.fullmatch(value):
        context, principal, seq = value.split(".")
        return f"{contexts[context][-15:]}.{people[principal][-15:]}.{seq}"
    if field == "context":
        return contexts.get(value, value)[-15:]
    if field == "principal":
        return people.get(value, value)[-15:]
    return value


@pytest.mark.parametrize("noun", sorted({name.partition(".")[0] for name in ALL_TOOLS.names}))
async def test_tools_answer_as_their_pages_show_and_take_names_and_ends_of_ids_alike(
    noun: str,
) -> None:
    for tool in ALL_TOOLS.names:
        if tool.startswith(f"{noun}."):
            await check_tool(tool)


async def check_tool(tool: str) -> None:
    """Play the example of a tool, by names and by ends of ids, and compare its page."""
    example = read_example(tool)
    assert example is not None, f"write {FOLDER.name}/{tool}.json"
    by_name = await play(tool, example)
    page = DOCS / "tools" / f"{tool}.md"
    generated = render_tool(ALL_TOOLS[tool], by_name)
    assert page.exists() and page.read_text("utf-8") == generated, f"{tool}: {RUN_MAKE_DOCS}"
    for answer in by_name.answers:
        check_names(answer)
    if not TAKES_ENDS.search(example.model_dump_json()):
        return
    by_end = await play(tool, example, with_ends)
    for one in (*by_name.answers, *by_end.answers):
        one.pop("missing", None)  # says what was asked for
        for said in ("message", "field", "reference"):
            one.get("error", {}).pop(said, None)
    assert by_end.answers == by_name.answers, tool
