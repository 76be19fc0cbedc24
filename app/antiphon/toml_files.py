"""TOML files of the user's, and what is wrong in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from antiphon_kernel.text.toml_lines import ConfigSyntaxError, TomlFile, parse_toml


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Part of a file that cannot be used."""

    path: Path
    line: int | None
    """The line at fault, from 1; None if it is the file as a whole."""
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


def read_toml(path: Path) -> TomlFile | FileProblem | None:
    """Return the content of a file, or why it cannot be used; None if there is no such file."""
    try:
        return parse_toml(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return FileProblem(path, None, f"cannot be read: {error.strerror or error}")
    except ConfigSyntaxError as error:
        return FileProblem(path, error.line, error.message)
