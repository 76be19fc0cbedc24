"""Every path the app knows: the project, its data, the user's configuration and state."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Final

from antiphon_kernel.types.constants import DATA_FOLDER

_MARKS: Final = (DATA_FOLDER, ".git")


def project_root(folder: Path) -> Path:
    """Return the nearest folder, from `folder` upwards, with data of ours or a git repository.

    `folder` itself where there is none. The search does not go above a repository, up to the user's
    home, or to a place that belongs to another user or in which everybody may write: what is there
    may have been put there by somebody else.
    """
    folder = folder.resolve()
    if _has_mark(folder):
        return folder
    owner, home = folder.stat().st_uid, _home()
    if folder == home:
        return folder
    for place in folder.parents:
        status = place.stat()
        if place == home or status.st_uid != owner or status.st_mode & stat.S_IWOTH:
            break
        if _has_mark(place):
            return place
    return folder


def _has_mark(place: Path) -> bool:
    return any((place / mark).exists() for mark in _MARKS)


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:  # nobody has said where it is
        return None


def data_folder(project: Path) -> Path:
    """Return the folder of a project's kernel files, unless configured otherwise."""
    return project / DATA_FOLDER


def chosen_data(data: Path | None, project: Path) -> Path:
    """Return the absolute data folder, by default the project's; say if it is above here."""
    if data is not None:
        return data.absolute()
    folder = data_folder(project)
    if project != Path.cwd().resolve():
        sys.stderr.write(f"antiphon: using {folder}\n")
    return folder


def project_of_data(data: Path) -> Path:
    """Return the folder that has a data folder as its `.antiphon`, else the project around here."""
    return data.parent.resolve() if data.name == DATA_FOLDER else project_root(Path.cwd())


def config_folder() -> Path:
    """Return the folder of the user's configuration: settings, keys and themes."""
    from platformdirs import user_config_path

    return user_config_path("antiphon")


def under_home(path: Path) -> Path:
    """`path` as people write it: `~` for the user's home."""
    try:
        return Path("~") / path.relative_to(Path.home())
    except (ValueError, RuntimeError):
        return path


def state_folder() -> Path:
    """Return the folder of the app's persistent state: choices, private drafts, positions."""
    from platformdirs import user_state_path

    return user_state_path("antiphon")
