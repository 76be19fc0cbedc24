"""Instructions that a project gives to models: the file `AGENTS.md` at its root."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.project_files import read_project_file

INSTRUCTIONS_FILE: Final = "AGENTS.md"

_log = logging.getLogger(__name__)


def read_project_instructions(project: Path) -> str:
    """Return the text of the project's `AGENTS.md`; empty if there is none, or none that counts.

    A file that is too long, is not UTF-8, is no ordinary file or leads out of the project does not
    count, and the log says so. Characters that hide text are replaced by visible ones.
    """
    try:
        (project / INSTRUCTIONS_FILE).lstat()
    except OSError:
        return ""
    try:
        limit = DEFAULT_LIMITS.project_instructions_bytes
        data = read_project_file(project, INSTRUCTIONS_FILE, limit, "project_instructions_bytes")
        text = data.decode("utf-8-sig")
    except AntiphonError as error:
        why = error.message
    except UnicodeDecodeError as error:
        place = f"{error.reason} at byte {error.start}"
        why = f"{project / INSTRUCTIONS_FILE} is not UTF-8 ({place})."
    else:
        return sanitize(text.replace("\r\n", "\n")).strip()
    _log.warning("models get no project instructions: %s", why)
    return ""
