"""Every path the app knows: the project, its data, the user's configuration and state."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from antiphon_kernel.types.conventions import DATA_FOLDER

_MARKS: Final = (DATA_FOLDER, ".git")


def project_root(folder: Path) -> Path:
    """The nearest folder, from `folder` upwards, with data of ours or a git repository in it.

    `folder` itself where there is none.
    """
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        if any((place / mark).exists() for mark in _MARKS):
            return place
    return folder


def data_folder(project: Path) -> Path:
    """Where a project's kernel keeps its files unless told otherwise."""
    return project / DATA_FOLDER


def config_folder() -> Path:
    """The user's configuration: themes and, later, keys."""
    from platformdirs import user_config_path

    return user_config_path("antiphon")


def under_home(path: Path) -> Path:
    """`path` as people write it: `~` for the user's home."""
    try:
        return Path("~") / path.relative_to(Path.home())
    except (ValueError, RuntimeError):
        return path


def state_folder() -> Path:
    """What the app remembers from one day to the next: private drafts, positions."""
    from platformdirs import user_state_path

    return user_state_path("antiphon")
