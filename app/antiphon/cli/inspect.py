"""`antiphon blame`, `history`, `layout`: who wrote a block, what happened to it, what is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli.kernel_option import (
    KernelTarget,
    call_kernel,
    kernel_options,
    print_result,
    run_with_kernel,
)
from antiphon.time_format import to_the_second
from antiphon_kernel.types.constants import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from antiphon_kernel.client.tool_client import ToolClient

_block = click.argument("block")
_json = click.option("--json", "as_json", is_flag=True, help="Print the tool's result as one line.")


@click.command()
@_block
@_json
@kernel_options
def blame(block: str, as_json: bool, kernel: KernelTarget) -> None:
    """Print a block's text and who wrote which part of it, when, and in which version.

    BLOCK is an id as the app and the tools print it: default.amy.12. Lines count from 0. A line
    that several have written takes several rows.

    Exit codes: 0 printed, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """

    async def ask(calls: ToolClient) -> dict[str, Any]:
        found = await calls.call("block.blame", {"block_id": block})
        if not as_json:
            of_that_version = {"block_id": block, "version": found["version"]}
            read = await calls.call("block.read", of_that_version)
            found["content"] = read["content"]
        return found

    found = run_with_kernel(kernel, ask, as_json=as_json)
    print_result(found, as_json, blame_rows(found))


@click.command()
@_block
@_json
@kernel_options
def history(block: str, as_json: bool, kernel: KernelTarget) -> None:
    """Print what has happened to a block, oldest first: who changed it, when and how.

    BLOCK is an id as the app and the tools print it: default.amy.12. The text of a version:
    antiphon call block.read '{"block_id": "default.amy.12", "version": 3}'.

    Exit codes: 0 printed, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """

    async def ask(calls: ToolClient) -> dict[str, Any]:
        versions: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            page = {"block_id": block, "after_version": after, "limit": 1_000}
            found = await calls.call("block.history", page)
            versions += found["versions"]
            after = found.get("next")
        return {"versions": versions}

    found = run_with_kernel(kernel, ask, as_json=as_json)
    print_result(found, as_json, history_rows(found))


@click.command()
@click.argument("context", required=False)
@click.option("--model", metavar="NAME", help="The model that reads.  [default: the only one]")
@_json
@kernel_options
def layout(context: str | None, model: str | None, as_json: bool, kernel: KernelTarget) -> None:
    """Print what a model reads of CONTEXT (id or label; by default `default`).

    A line ──── says that providers keep what they have read up to there.

    Exit codes: 0 printed, 1 the kernel refused, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    chosen = context or kernel.context or DEFAULT_CONTEXT
    params = {"context": chosen} | ({"model": model} if model is not None else {})
    found = call_kernel(kernel, "context.layout", params, as_json=as_json)
    print_result(found, as_json, layout_rows(found))


def layout_rows(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the stream, with its cache points."""
    for item in found["items"]:
        if item["index"]:
            yield ""
        yield from item["text"].split("\n")
        if item["cache_points"]:
            yield ""
            yield f"──── cache point: {', '.join(item['cache_points'])} ────".replace("_", "-")
    if not found["items"]:
        yield "(nothing to read)"


def blame_rows(found: dict[str, Any]) -> Iterator[str]:
    """One row for each part of a line that one change has written."""
    wide = max((len(run["username"]) for run in found["runs"]), default=0)
    versions = [_version_of(run) for run in found["runs"]]
    last = max(map(len, versions), default=0)
    text, line, begins = found["content"], 0, True
    digits = len(str(text.count("\n")))
    for run, version in zip(found["runs"], versions, strict=True):
        stamp = f"{run['username']:{wide}}  {version:<{last}}  {to_the_second(run['time'])}"
        # Only a newline ends a line.
        for piece in re.findall(r"[^\n]*\n|[^\n]+", text[run["start"] : run["end"]]):
            yield f"{line if begins else '':>{digits}}  {stamp}  {piece.removesuffix(chr(10))}"
            begins = piece.endswith("\n")
            line += begins
    if not found["runs"]:
        yield "(no text)"


def _version_of(run: dict[str, Any]) -> str:
    """The version of a run, with the block that has it if that is the original of a copy."""
    original = run.get("source_block_name")
    return f"v{run['version']}" + (f" of {original}" if original else "")


def history_rows(found: dict[str, Any]) -> Iterator[str]:
    versions = found["versions"]
    wide = max((len(one["username"]) for one in versions), default=0)
    last = max((len(str(one["version"])) for one in versions), default=0)
    for one in versions:
        when = to_the_second(one["time"])
        yield f"v{one['version']:<{last}}  {when}  {one['username']:{wide}}  {one['operation']}"
