"""Kernel that a command calls: one of this user's own, by its folder, or one they may join."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from antiphon.cli.signals import GRACE_SECONDS, default_sigint, run
from antiphon_kernel.client.usage import data_option, is_typed
from antiphon_kernel.text.sanitize import sanitize

if TYPE_CHECKING:
    from antiphon_kernel.client.address import Locate
    from antiphon_kernel.client.tool_client import ToolClient

Result = TypeVar("Result")

DATA: Final = data_option(envvar="ANTIPHON_DATA")

_URL: Final = click.option(
    "--url",
    metavar="URL",
    envvar="ANTIPHON_URL",
    help="A kernel that you were invited to, as `antiphon join` takes it.",
)


@dataclass(frozen=True, slots=True)
class KernelTarget:
    """The kernel that the command line names."""

    find: Callable[[], Locate]
    """Starts it if it is one of this user's own and does not run."""
    context: str | None = None
    """Id or label of the context that its address names."""
    as_name: str | None = None
    """Name of the caller; None: its owner, or the person who was invited."""
    as_kind: str | None = None
    """Kind of principal that `as_name` is; a person if None."""


def kernel_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name a kernel; it gets a `KernelTarget` as `kernel`.

    A kernel of this user's own is started when it is asked something, which is said on stderr. A
    `context` that is not given is the one that the URL names, if it does.
    """

    @DATA
    @_URL
    @functools.wraps(command)
    def with_kernel(*arguments: object, data: Path | None, url: str | None, **named: Any) -> None:
        who = {name: named.pop(name) for name in ("as_name", "as_kind") if name in named}
        kernel = replace(_chosen(data, url), **who)
        if "context" in named:
            named["context"] = named["context"] or kernel.context
        command(*arguments, kernel=kernel, **named)

    return with_kernel


AS_JSON: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print the result, or the error, as one line of JSON."
)
AS_NAME: Final = click.option(
    "--as",
    "as_name",
    metavar="NAME",
    help="Act as this person or model, made on first use.  [default: the owner]",
)
AS_KIND: Final = click.option(
    "--kind",
    "as_kind",
    type=click.Choice(["human", "model", "agent", "source"]),
    help="What the NAME of --as is.  [default: human]",
)


def run_with_kernel(
    kernel: KernelTarget,
    ask: Callable[[ToolClient], Awaitable[Result]],
    *,
    once: bool = True,
    grace: float = GRACE_SECONDS,
) -> Result:
    """Return the result of `ask`, called with a connection to the kernel.

    Args:
        once: whether it makes a single call.
        grace: seconds that it has to end when Ctrl+C interrupts it.

    Raises:
        AntiphonError: what a call failed with.
        KeyboardInterrupt: if Ctrl+C ends it.
    """
    with default_sigint():
        from antiphon_kernel.client.tool_client import ToolClient

    async def asked() -> Result:
        name, kind = kernel.as_name, kernel.as_kind
        async with ToolClient(locate, as_name=name, as_kind=kind, once=once) as calls:
            return await ask(calls)

    locate = kernel.find()
    return run(asked, grace=grace)


def call_kernel(kernel: KernelTarget, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of one call; with errors as those of `run_with_kernel`."""
    return run_with_kernel(kernel, lambda calls: calls.call(tool, params))


def print_result(result: Mapping[str, Any], as_json: bool, lines: Iterable[str] = ()) -> None:
    """Print the result of a command as one line of JSON, else as lines that drive no terminal."""
    from antiphon.cli.call import dump_json_line

    if as_json:
        click.echo(dump_json_line(result))
        return
    for line in lines:
        click.echo(sanitize(line))


def _chosen(data: Path | None, url: str | None) -> KernelTarget:
    given = click.get_current_context().find_object(KernelTarget)
    if given is not None:
        if data is not None or url is not None:
            raise click.UsageError("the kernel is chosen already: leave out --data and --url")
        return given
    if data is not None and url is not None:
        typed = {name for name in ("data", "url") if is_typed(name)}
        if len(typed) != 1:
            raise click.UsageError(
                "--data (or ANTIPHON_DATA) and --url (or ANTIPHON_URL) name two kernels:"
                " give one of them"
            )
        data, url = (data, None) if "data" in typed else (None, url)
    if url is None:
        return own_kernel(data)
    from antiphon.cli.join import with_token

    address, context = with_token(url)
    return KernelTarget(lambda: lambda: address, context)


def own_kernel(data: Path | None, as_name: str | None = None) -> KernelTarget:
    """Return a kernel of this user's own, by its folder or that of the project."""

    def find() -> Locate:
        from antiphon.cli.launcher import ensure_kernel
        from antiphon_kernel.client.address import read_address

        folder = ensure_kernel(data)
        return lambda: read_address(folder)

    return KernelTarget(find, as_name=as_name)
