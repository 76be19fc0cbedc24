"""Completion of commands in shells, and of names that only a running kernel knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from antiphon.locations import data_folder, project_root
from antiphon_kernel.types.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon_kernel.client.address import KernelAddress

_SHELLS: Final = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_SECONDS: Final = 1.0
"""How long a kernel may take to answer before nothing is offered."""

_HARMLESS: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
"""A name that means itself on a command line: others have chosen it."""


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands, options, files and names of a running kernel.

    \b
    antiphon completion bash > ~/.local/share/bash-completion/completions/antiphon
    antiphon completion fish > ~/.config/fish/completions/antiphon.fish
    antiphon completion zsh > ~/.zfunc/_antiphon

    bash needs its package bash-completion for this. zsh reads ~/.zfunc if ~/.zshrc says
    fpath+=~/.zfunc before compinit. New shells complete then.
    """
    command = click.get_current_context().find_root().command
    click.echo(_SHELLS[shell](command, {}, "antiphon", "_ANTIPHON_COMPLETE").source())


def _listed_by(
    tool: str, list_name: str, field: str
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a function that completes names which a tool lists; it starts no kernel."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
        import asyncio

        from antiphon_kernel.client.discovery import kernel_at

        async def ask(address: KernelAddress) -> list[str]:
            from antiphon_kernel.client.tool_client import ToolClient

            async with ToolClient(lambda: address, once=True) as calls:
                found = await asyncio.wait_for(calls.call(tool, {}), _SECONDS)
            return [one[field] for one in found[list_name]]

        try:
            data = ctx.params.get("data") or data_folder(project_root(Path.cwd()))
            address = None if ctx.params.get("url") else kernel_at(data)
            names = asyncio.run(ask(address)) if address is not None else []
        except (AntiphonError, OSError, TimeoutError):
            return []
        return [one for one in names if one.startswith(begun) and _HARMLESS.fullmatch(one)]

    return complete


complete_context: Final = _listed_by("context.list", "contexts", "label")
complete_model: Final = _listed_by("model.list", "models", "name")
complete_tool: Final = _listed_by("kernel.tools", "tools", "name")
