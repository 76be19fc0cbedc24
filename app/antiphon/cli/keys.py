"""`antiphon keys`: names and keys of the app's actions, as a table for `settings.toml`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from antiphon.actions import Action


@click.command()
def keys() -> None:
    """Print every action of the app with its keys, as the table [keys] of settings.toml.

    The keys are yours where settings.toml gives some. What is wrong in it is on standard error.

    Exit codes: 0 printed, 1 something in settings.toml is wrong, 2 wrong arguments.
    """
    from antiphon.keymap import KeyMap
    from antiphon.locations import config_folder, state_folder
    from antiphon.settings import SETTINGS_FILE, SettingsStore
    from antiphon_kernel.text.sanitize import sanitize

    store = SettingsStore(config_folder(), state_folder())
    keymap = KeyMap(store.read().keys)
    click.echo(f"# {config_folder() / SETTINGS_FILE}\n[keys]")
    for line in _lines(keymap.actions):
        click.echo(sanitize(line))
    for problem in store.problems:
        click.echo(sanitize(f"antiphon: {problem}"), err=True)
    if store.problems:
        sys.exit(ExitCode.FAILED)


def _lines(actions: tuple[Action, ...]) -> Iterator[str]:
    from antiphon.actions import Mode

    for action in actions:
        if action.typed:
            continue
        modes = ", ".join(mode for mode in Mode if mode in action.modes)
        where = "anywhere" if len(action.modes) == len(Mode) else modes
        listed = ", ".join(f'"{key}"' for key in action.keys)
        yield f"{action.name} = [{listed}]  # {where}: {action.help}"
