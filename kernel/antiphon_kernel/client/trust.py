"""Trust in data folders, those that this user founded on this machine or has said to trust, and
in configuration files of projects.

A trusted folder holds a random id, and the user's state folder holds an entry for this id at the
folder's real path: a folder that came by other means (a clone, an archive, a move) has none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shlex
from pathlib import Path
from typing import Final

from antiphon_kernel.client.ownership import (
    check_ownership,
    known_files,
    make_state_folder,
    state_path,
    untrusted,
    write_private,
)

ID_FILE: Final = "folder.id"
"""In a data folder: its random id."""

FOUNDED_VARIABLE: Final = "ANTIPHON_FOUNDED"
"""In the environment of the process that founded a folder and could not register it, and of its
children: the id of the folder and its real path."""

_REGISTRY: Final = "folders"
_FILES: Final = "files"
_ID: Final = re.compile(r"[0-9a-f]{32}")


def is_trusted(data: Path) -> bool:
    """Return whether the data folder may be opened; False where there is none yet.

    Raises:
        AntiphonError: untrusted_folder if there is one that may not be.
    """
    check_ownership(data)
    # In this order: whoever founds it writes the id before any other file, apart from the one that
    # becomes the id.
    files = [name for name in known_files(data) if not name.startswith(ID_FILE)]
    if is_registered(data):
        return True
    if read_id(data) is None and not files:
        return False
    if is_registered(data):
        return True  # it has been founded since it was looked at
    command = f"antiphon trust {shlex.quote(str(data))}"
    raise untrusted(
        data,
        "you did not found it here; it may have come with a clone, an archive or a copy, or has"
        f" been moved. {_state_folder_advice()}`{command}` shows what it holds and asks whether to"
        " trust it",
    )


def found(data: Path) -> str | None:
    """Make the data folder where there is none, and trust it from now on.

    Returns:
        A sentence about what could not be remembered, None if all is well.

    Raises:
        AntiphonError: untrusted_folder if there is one already that is not trusted.
        OSError: if it cannot be made.
    """
    check_ownership(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_trusted(data):
        return None
    folder_id, warning = secrets.token_hex(16), None
    try:
        # First: whoever sees the id in the folder finds the entry.
        _register(folder_id, data)
    except OSError as error:
        warning = (
            f"{data} cannot be remembered as yours ({error.strerror}: {error.filename}): it works"
            " until this process and those it starts have ended, then it takes `antiphon trust"
            f" {shlex.quote(str(data))}` and a state folder that can be written to (HOME or"
            " XDG_STATE_HOME)."
        )
    fresh = data / f"{ID_FILE}.{folder_id}"
    try:
        write_private(fresh, folder_id + "\n")
        # A link and not a rename: of several that found it at once, one gives it its id.
        (data / ID_FILE).hardlink_to(fresh)
    except OSError as error:
        if warning is None:
            _entry(folder_id, data).unlink(missing_ok=True)
        if isinstance(error, FileExistsError) and is_trusted(data):
            return None
        raise
    finally:
        fresh.unlink(missing_ok=True)
    if warning is not None:
        os.environ[FOUNDED_VARIABLE] = _founded_here(folder_id, data)
    return warning


def trust(data: Path) -> None:
    """Trust a data folder that is there, whoever founded it.

    Raises:
        AntiphonError: untrusted_folder if others could have written in it.
        OSError: if that cannot be remembered.
    """
    check_ownership(data)
    # Another id: whoever made the folder may know the one in it, and put it into the next one.
    before, folder_id = read_id(data), secrets.token_hex(16)
    try:
        write_private(data / ID_FILE, folder_id + "\n")
    except OSError:
        if before is None:
            raise
        folder_id = before  # a read-only medium
    _register(folder_id, data)


def is_trusted_file(path: Path, content: bytes) -> bool:
    """Return whether this user has said to trust a file at this place with this content."""
    try:
        entry = _file_entry(path)
        digest = hashlib.sha256(content).hexdigest()
        return _is_own(entry.parent) and entry.read_text("ascii") == digest
    except (OSError, ValueError):
        return False


def trust_file(path: Path, content: bytes) -> None:
    """Trust a file as long as it has this content.

    Raises:
        OSError: if that cannot be remembered.
    """
    _make_registry(_FILES)
    write_private(_file_entry(path), hashlib.sha256(content).hexdigest())


def _file_entry(path: Path) -> Path:
    """Return the registry's file for a file at a path."""
    return state_path(_FILES) / _place(path)


def _place(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]


def read_id(data: Path) -> str | None:
    """Return the random id in the data folder, None if there is none."""
    try:
        with (data / ID_FILE).open("rb") as file:
            text = file.read(64).decode("ascii", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return text if _ID.fullmatch(text) else None


def is_registered(data: Path) -> bool:
    """Return whether this user has founded the folder here, or said to trust it."""
    folder_id = read_id(data)
    if folder_id is None:
        return False
    if os.environ.get(FOUNDED_VARIABLE) == _founded_here(folder_id, data):
        return True
    try:
        entry = _entry(folder_id, data)
        return _is_own(entry.parent) and _folder_of(entry) == os.path.realpath(data)
    except (OSError, ValueError):
        return False


def _founded_here(folder_id: str, data: Path) -> str:
    return f"{folder_id} {os.path.realpath(data)}"


def _entry(folder_id: str, data: Path) -> Path:
    """Return the registry's file for an id at a path: a copy has the same id at another path."""
    return state_path(_REGISTRY) / f"{folder_id}-{_place(data)}.json"


def _is_own(registry: Path) -> bool:
    """Whether nobody else writes in the registry: with `sudo` HOME may still be another user's."""
    status = registry.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _folder_of(entry: Path) -> str:
    found = json.loads(entry.read_bytes())
    if not isinstance(found, dict) or not isinstance(found.get("folder"), str):
        raise ValueError(f"{entry} is no entry of the registry")
    return str(found["folder"])


def _make_registry(name: str) -> Path:
    """Make a registry; raises OSError if it would not be believed afterwards."""
    registry = make_state_folder(name)
    if not _is_own(registry):
        raise PermissionError(1, "others may write in it, or it is another user's", str(registry))
    return registry


def _register(folder_id: str, data: Path) -> None:
    """Remember the folder; raises OSError as `_make_registry` does."""
    for entry in _make_registry(_REGISTRY).glob("*.json"):
        if _is_stale(entry):
            entry.unlink(missing_ok=True)
    fields = {"folder": os.path.realpath(data)}
    write_private(_entry(folder_id, data), json.dumps(fields) + "\n")


def _is_stale(entry: Path) -> bool:
    """Whether an entry is about a folder that is gone, or has been founded anew."""
    try:
        folder = Path(_folder_of(entry))
        folder_id = read_id(folder)
        # A folder that is being founded has an entry before it has an id.
        return not folder.exists() or (
            folder_id is not None and not entry.name.startswith(folder_id)
        )
    except (ValueError, OSError) as error:
        return isinstance(error, ValueError)


def _state_folder_advice() -> str:
    """Return what to do first if nothing can be remembered; nothing if it can."""
    try:
        place = state_path(_REGISTRY)
        while not place.exists():
            place = place.parent
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return ""
    except OSError:
        pass
    return (
        "No folder is remembered as yours while your state folder cannot be written to: first set"
        " XDG_STATE_HOME (or HOME) to a folder of yours where you may write, for every start. Then "
    )
