"""`antiphon drift`: a command for each tool of drift, with its parameters as options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import click

from antiphon.cli.errors import KernelCommand
from antiphon.cli.kernel_option import (
    AS_JSON,
    AS_NAME,
    KernelTarget,
    call_kernel,
    kernel_options,
    print_result,
)
from antiphon.cli.shell_completion import complete_context
from antiphon_kernel.client.usage import CommandGroup

_SIDES: Final = ("ours", "theirs", "both")


def _decisions(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Any:
    """Return what stands in the place of conflicts, by their numbers."""
    parted = [one.partition("=") for one in given]
    if wrong := [one for one, equals, _ in parted if not one.isdecimal() or not equals]:
        raise click.BadParameter(f"{wrong[0]!r} is not like 0=ours or 0=TEXT", ctx, option)
    return {one: {"side" if said in _SIDES else "text": said} for one, _, said in parted}


_option = partial(click.Option, default=None)
_flag = partial(click.Option, is_flag=True, default=None)
_DRIFT: Final = click.Argument(["drift_id"])
_TO, _SOURCE = (click.Argument([one], shell_complete=complete_context) for one in ("to", "source"))
_CONTEXT: Final = _option(["--context"], help="Id or label.  [default: default]")
_BLOCKS: Final = _option(["--block", "blocks"], multiple=True, help="One block; may be repeated.")
_WAKE: Final = _option(["--wake/--no-wake"], help="Whether models answer.  [default: people's]")
_TARGET: Final = _option(["--target"], help="Where it goes.  [default: the parent of the fork]")
_MODEL: Final = _option(["--model"], help="The model that writes the summary.")
_MERGE: Final = (
    _flag(["--no-blocks"], help="Bring none of its new blocks."),
    _option(["--resolve"], multiple=True, callback=_decisions, metavar="N=SIDE|N=TEXT"),
    _option(["--prefer"], type=click.Choice(_SIDES), help="Decide the other conflicts."),
    _flag(["--summary"], help="Bring a summary instead."),
    _flag(["--conclude"], help="Archive the fork."),
    _option(["--plan"], help="Digest of the preview that this is after."),
)
_COMMIT: Final = (
    click.Argument(["blocks"], nargs=-1, required=True),
    _option(["--path"], help="File, perhaps with lines (#L1-L2), for texts without a diff."),
    _option(["--message"], help="Make a commit of git, too."),
    _option(["--difference"], help="Digest of the difference that was shown."),
)

_COMMANDS: Final[Mapping[str, tuple[str, tuple[click.Parameter, ...]]]] = {
    "push": ("Copy blocks, or the last answer, to TO.", (_TO, _BLOCKS, _CONTEXT, _WAKE)),
    "pull": ("Copy blocks, or the last answer, of SOURCE.", (_SOURCE, _BLOCKS, _CONTEXT, _WAKE)),
    "preview": ("Show what a merge of the fork SOURCE would change.", (_SOURCE, _TARGET)),
    "merge": ("Merge the fork SOURCE.", (_SOURCE, _TARGET, _BLOCKS, _MODEL, *_MERGE)),
    "distill": ("Write a summary of SOURCE.", (_SOURCE, _BLOCKS, _CONTEXT, _MODEL, _WAKE)),
    "commit": ("Show what blocks change in files; change it with --difference.", _COMMIT),
    "list": ("List the drifts, from or to one context or all.", (_CONTEXT,)),
    "cancel": ("Take back a drift that has not arrived.", (_DRIFT,)),
}


@click.group(cls=CommandGroup)
def drift() -> None:
    """Bring text from one context to another, or into files."""


def _run(tool: str, *, kernel: KernelTarget, as_json: bool, **given: Any) -> None:
    params = {name: value for name, value in given.items() if value not in (None, (), {})}
    if params.pop("no_blocks", False):
        params["blocks"] = []
    found = call_kernel(kernel, f"drift.{tool}", params)
    print_result(found, as_json, drift_rows(found))


for _name, (_help, _params) in _COMMANDS.items():
    _made = click.command(_name, cls=KernelCommand, help=_help)
    _command = _made(AS_JSON(AS_NAME(kernel_options(partial(_run, _name)))))
    _command.params[:0] = _params
    drift.add_command(_command)


def drift_rows(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a result: each value behind its name, texts below it."""
    if "before" in found:
        from antiphon_kernel.text.patch import unified_diff

        diff = unified_diff(found["before"], found["after"], found["name"])
        found = {**found, "before": [], "after": [], "diff": diff}
    for name, value in found.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) or "\n" in str(one):
                yield f"{name}:"
                lines = drift_rows(one) if isinstance(one, dict) else one.splitlines()
                yield from (f"  {line}" for line in lines)
            else:
                yield f"{name}: {one}"
