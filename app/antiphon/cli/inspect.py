"""Commands that show or measure something: of blocks, contexts and models, keys, benchmarks."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli.errors import CommandError, KernelCommand
from antiphon.cli.kernel_option import (
    AS_JSON,
    KernelTarget,
    call_kernel,
    kernel_options,
    print_result,
    run_with_kernel,
)
from antiphon.cli.shell_completion import complete_context
from antiphon.time_format import to_the_second
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.constants import DEFAULT_CONTEXT, ExitCode

if TYPE_CHECKING:
    from antiphon_kernel.client.tool_client import ToolClient

_block = click.argument("block")


@click.command(cls=KernelCommand)
@_block
@AS_JSON
@kernel_options
def blame(block: str, as_json: bool, kernel: KernelTarget) -> None:
    """Print a block's text and who wrote which part of it, when, and in which version.

    BLOCK is an id as the app and the tools print it: default.amy.12. Lines count from 0. A line
    that several have written takes several rows.
    """

    async def ask(calls: ToolClient) -> dict[str, Any]:
        found = await calls.call("block.blame", {"block_id": block})
        if not as_json:
            of_that_version = {"block_id": block, "version": found["version"]}
            read = await calls.call("block.read", of_that_version)
            found["content"] = read["content"]
        return found

    found = run_with_kernel(kernel, ask)
    print_result(found, as_json, blame_rows(found))


@click.command(cls=KernelCommand)
@_block
@AS_JSON
@kernel_options
def history(block: str, as_json: bool, kernel: KernelTarget) -> None:
    """Print what has happened to a block, oldest first: who changed it, when and how.

    BLOCK is an id as the app and the tools print it: default.amy.12. The text of a version:
    antiphon call block.read '{"block_id": "default.amy.12", "version": 3}'.
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

    found = run_with_kernel(kernel, ask)
    print_result(found, as_json, history_rows(found))


@click.command(cls=KernelCommand)
@click.argument("context", required=False, shell_complete=complete_context)
@click.option("--model", metavar="NAME", help="The model that reads.  [default: the only one]")
@AS_JSON
@kernel_options
def layout(context: str | None, model: str | None, as_json: bool, kernel: KernelTarget) -> None:
    """Print what a model reads of CONTEXT (id or label; by default `default`).

    A line ──── says that providers keep what they have read up to there.
    """
    params = {"context": context or DEFAULT_CONTEXT}
    params |= {"model": model} if model is not None else {}
    found = call_kernel(kernel, "context.layout", params)
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
    versions = []
    for run in found["runs"]:
        # That of a copy is one of the block that it is a copy of.
        original = run.get("source_block_name")
        versions.append(f"v{run['version']}" + (f" of {original}" if original else ""))
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


def history_rows(found: dict[str, Any]) -> Iterator[str]:
    versions = found["versions"]
    wide = max((len(one["username"]) for one in versions), default=0)
    last = max((len(str(one["version"])) for one in versions), default=0)
    for one in versions:
        when = to_the_second(one["time"])
        yield f"v{one['version']:<{last}}  {when}  {one['username']:{wide}}  {one['operation']}"


@click.command(cls=KernelCommand)
@click.option("--check", is_flag=True, help="Ask each model for a few tokens.")
@AS_JSON
@kernel_options
def models(check: bool, as_json: bool, kernel: KernelTarget) -> None:
    """List the models and agents that can be asked here, and problems of their configuration.

    The one marked with * answers messages that name none. Agents are programs that take part over
    ACP: those of config.toml, and known ones on PATH. --check costs what the providers take
    for a few tokens; only the owner may.

    Exit codes: 0 listed (with --check: all answered), 1 a model did not answer or the kernel
    refused, 2 wrong arguments, 3 no kernel could be reached or started.
    """

    async def ask(calls: ToolClient) -> tuple[dict[str, Any], dict[str, Any] | None]:
        listed = await calls.call("model.list", {})
        listed |= await calls.call("agent.list", {})
        return listed, await calls.call("model.check", {}) if check else None

    listed, checked = run_with_kernel(kernel, ask, once=not check)
    answers = {one["name"]: one for one in checked["models"]} if checked is not None else {}
    if as_json:
        print_result({**listed, **({"checked": checked["models"]} if checked else {})}, True)
    else:
        print_result(listed, False, _model_rows(listed, answers))
        for problem in listed["problems"]:
            place = problem["file"] + (f":{problem['line']}" if "line" in problem else "")
            click.echo(sanitize(f"antiphon: {place}: {problem['message']}"), err=True)
    if not all(one["ok"] for one in answers.values()):
        sys.exit(ExitCode.FAILED)


def _model_rows(
    listed: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    if not listed["models"]:
        yield listed["advice"]
        if not listed["agents"]:
            return
    rows: list[Sequence[str]] = [("name", "kind", "model", "key", "window", "tools", "$/M in/out")]
    for one in listed["models"]:
        window, price = one.get("window"), one.get("price")
        rows.append(
            (
                f"{one['name']}{'*' if one['default'] else ''}",
                one["kind"],
                one.get("model", "-"),
                one.get("key", "-"),
                f"{window['input']:,}" if window else "-",
                str(len(one["tools"])) if "tools" in one else "all",
                f"{price['input']:g}/{price['output']:g}" if price else "-",
            )
        )
    rows += [(one["name"], "acp", *"-----") for one in listed["agents"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, model in zip(rows, ({"name": ""}, *listed["models"], *listed["agents"]), strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if "command" in model:
            yield f"    runs {shlex.join(model['command'])}"
        if "base_url" in model:
            yield f"    at {model['base_url']}"
        if model.get("tools"):
            yield f"    tools: {', '.join(model['tools'])}"
        answer = answers.get(model["name"])
        if answer is not None:
            yield "    answers" if answer["ok"] else f"    {answer['error']}"


@click.command()
def keys() -> None:
    """Print every action of the app with its keys, as the table [keys] of settings.toml.

    The keys are yours where settings.toml gives some. What is wrong in it is on standard error.

    Exit codes: 0 printed, 1 something in settings.toml is wrong, 2 wrong arguments.
    """
    from antiphon.actions import Mode, Owner
    from antiphon.keymap import KeyMap
    from antiphon.locations import config_folder, state_folder
    from antiphon.settings import SETTINGS_FILE, SettingsStore

    store = SettingsStore(config_folder(), state_folder())
    keymap = KeyMap(store.read().keys)
    click.echo(f"# {config_folder() / SETTINGS_FILE}\n[keys]")
    for action in keymap.actions:
        if not action.typed:
            modes = ", ".join(mode for mode in Mode if mode in action.modes)
            where = "anywhere" if len(action.modes) == len(Mode) else modes
            where = "in a replay" if action.owner is Owner.REPLAY else where
            listed = ", ".join(f'"{key}"' for key in action.keys)
            click.echo(sanitize(f"{action.name} = [{listed}]  # {where}: {action.help}"))
    for problem in store.problems:
        click.echo(sanitize(f"antiphon: {problem}"), err=True)
    if store.problems:
        sys.exit(ExitCode.FAILED)


PLACES = ("document", "kernel", "files", "models", "app", "soak", "ssh", "store", "web")
"""The things that can be measured: tests/bench/*.py."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("place", type=click.Choice(PLACES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a figure.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def bench(place: str, as_json: bool, options: tuple[str, ...]) -> None:
    """Measure document, kernel, files, models, app, soak, ssh or web, beside budgets if there are.

    Benchmarks are part of the source checkout, not of an installed antiphon. Further OPTIONS go to
    the benchmark: antiphon bench app -- --help lists them.

    Exit codes: 0 measured, 1 it could not be, 2 wrong arguments, or no source checkout.
    """
    checkout = Path(__file__).parents[3]
    if not (checkout / "tests" / "bench").is_dir():
        raise CommandError(
            "benchmarks run from a source checkout of antiphon: call the antiphon in its .venv.",
            ExitCode.USAGE,
        )
    command = [sys.executable, "-m", f"tests.bench.{place}", *options]
    command += ["--json"] if as_json else []
    sys.stdout.flush()
    os.chdir(checkout)
    os.execv(sys.executable, command)
