"""`antiphon models`: the models of a kernel, and whether they answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from antiphon.cli.kernel_option import KernelTarget, kernel_options, print_result, run_with_kernel
from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from antiphon_kernel.client.tool_client import ToolClient

_HEADINGS: Final = ("name", "kind", "model", "key", "window", "tools", "$/M in/out")


@click.command()
@click.option("--check", is_flag=True, help="Ask each model for a few tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
@kernel_options
def models(check: bool, as_json: bool, kernel: KernelTarget) -> None:
    """List the models that can be asked here, and what is wrong with their configuration.

    The one marked with * answers messages that name none. --check costs what the providers take
    for a few tokens; only the owner may.

    Exit codes: 0 listed (with --check: all answered), 1 a model did not answer or the kernel
    refused, 2 wrong arguments, 3 no kernel could be reached or started.
    """

    async def ask(calls: ToolClient) -> tuple[dict[str, Any], dict[str, Any] | None]:
        listed = await calls.call("model.list", {})
        return listed, await calls.call("model.check", {}) if check else None

    listed, checked = run_with_kernel(kernel, ask, as_json=as_json, once=not check)
    answers = {one["name"]: one for one in checked["models"]} if checked is not None else {}
    if as_json:
        print_result({**listed, **({"checked": checked["models"]} if checked else {})}, True)
    else:
        from antiphon_kernel.text.sanitize import sanitize

        print_result(listed, False, _lines(listed, answers))
        for problem in listed["problems"]:
            place = problem["file"] + (f":{problem['line']}" if "line" in problem else "")
            click.echo(sanitize(f"antiphon: {place}: {problem['message']}"), err=True)
    if not all(one["ok"] for one in answers.values()):
        sys.exit(ExitCode.FAILED)


def _lines(listed: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not listed["models"]:
        yield listed["advice"]
        return
    rows = [_HEADINGS, *(_cells(one) for one in listed["models"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if not number:
            continue
        model = listed["models"][number - 1]
        if "base_url" in model:
            yield f"    at {model['base_url']}"
        if model.get("tools"):
            yield f"    tools: {', '.join(model['tools'])}"
        answer = answers.get(model["name"])
        if answer is not None:
            yield "    answers" if answer["ok"] else f"    {answer['error']}"


def _cells(model: Mapping[str, Any]) -> Sequence[str]:
    window, price = model.get("window"), model.get("price")
    return (
        f"{model['name']}{'*' if model['default'] else ''}",
        model["kind"],
        model.get("model", "-"),
        model.get("key", "-"),
        f"{window['input']:,}" if window else "-",
        str(len(model["tools"])) if "tools" in model else "all",
        f"{price['input']:g}/{price['output']:g}" if price else "-",
    )
