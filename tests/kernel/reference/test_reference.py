"""The generated pages are what the registry and a real kernel say now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from antiphon_kernel.tools.json_schema import described_schema
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.reference.error_catalogue import CATALOGUE
from tests.kernel.reference.examples import ALL_TOOLS, FOLDER, play, read_example
from tests.kernel.reference.pages import (
    DOCS,
    errors_page,
    index_page,
    limits,
    limits_page,
    stale_pages,
)
from tests.kernel.reference.tool_page import render_tool

ROOT = DOCS.parent
RUN_MAKE_DOCS = "it is not what the registry says now: run make docs"


def test_every_tool_has_an_example_and_every_example_a_tool() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == ALL_TOOLS.names


@pytest.mark.parametrize("name", ALL_TOOLS.names)
async def test_page_of_a_tool_shows_what_its_example_is_answered_with(name: str) -> None:
    example = read_example(name)
    assert example is not None, f"write {FOLDER.name}/{name}.json"
    page = DOCS / "tools" / f"{name}.md"
    generated = render_tool(ALL_TOOLS[name], await play(name, example))
    assert page.exists() and page.read_text("utf-8") == generated, RUN_MAKE_DOCS


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
    for path in (*ROOT.glob("kernel/**/*.py"), *ROOT.glob("app/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if any(ast.unparse(one) == "ErrorCode.TOO_LARGE" for one in node.args[:1]):
                given = {one.arg: one.value for one in node.keywords}
                assert "limit_name" in given, f"{path.name}:{node.lineno}"
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
    trees = [
        ast.parse(path.read_text("utf-8"))
        for path in (*ROOT.glob("kernel/**/*.py"), *ROOT.glob("app/**/*.py"))
    ]
    by_code = {pair for tree in trees for pair in fields_given(tree)}
    keywords = {
        keyword.arg
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and not any(fields_given(node))
        for keyword in node.keywords
    }
    literals = {
        key.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict | ast.Subscript)
        for key in (node.keys if isinstance(node, ast.Dict) else [node.slice])
        if isinstance(key, ast.Constant)
    }
    never = [
        f"{code}: {field}"
        for code, meaning in CATALOGUE.items()
        for field in meaning.fields
        if (code, field) not in by_code and field not in keywords | literals
    ]
    assert never == []


def test_every_error_has_a_meaning() -> None:
    assert list(CATALOGUE) == list(ErrorCode)


def test_every_machine_field_of_an_error_is_in_the_catalogue() -> None:
    unknown = [
        f"{path.name}: {code} carries {field}"
        for path in (*ROOT.glob("kernel/**/*.py"), *ROOT.glob("app/**/*.py"))
        for code, field in fields_given(ast.parse(path.read_text("utf-8")))
        if field not in CATALOGUE[code].fields
    ]
    assert unknown == []


def fields_given(tree: ast.AST) -> Iterator[tuple[ErrorCode, str]]:
    """The keywords of `AntiphonError(ErrorCode.X, …, field=…)` and `invalid_params(…, field=…)`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("AntiphonError"), [ast.Attribute(attr=name), *_]):
                code = ErrorCode[name]
            case ast.Call(ast.Name("invalid_params")):
                code = ErrorCode.INVALID_PARAMS
            case _:
                continue
        yield from ((code, one.arg) for one in node.keywords if one.arg is not None)


@pytest.mark.parametrize("name", ALL_TOOLS.names)
def test_every_field_of_requests_and_results_says_what_it_means(name: str) -> None:
    silent = []
    for model in (ALL_TOOLS[name].params, ALL_TOOLS[name].result):
        schema = described_schema(model)
        for title, one in {model.__name__: schema, **schema.get("$defs", {})}.items():
            if not one.get("description"):
                silent.append(title)
            fields = one.get("properties", {}).items()
            silent += [f"{title}.{field}" for field, said in fields if "description" not in said]
    assert silent == [], "put a docstring under each"


def test_docstring_under_a_field_is_its_description() -> None:
    tool = ALL_TOOLS["block.read"]
    assert issubclass(tool.params, BaseModel)
    stated = described_schema(tool.params)["properties"]["line_numbers"]["description"]
    assert stated == "Put number and tab before each line; without, `content` is exactly the text."
