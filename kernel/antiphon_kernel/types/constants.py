"""Constants shared by a kernel and those who start or join it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DATA_FOLDER: Final = ".antiphon"
"""A project's kernel keeps its files in the folder of this name at the project's root."""

DEMO_PROJECT: Final = "demo"
"""Folder of the project of a demo, in its data folder."""

CONFIG_FILE: Final = "config.toml"
"""Configuration: in the data folder of a project, and in the user's configuration folder."""

MCP_FILE: Final = ".mcp.json"
"""In a project: the MCP servers that it names, as other programs read it."""

LOG_FILE: Final = "kernel.log"
"""In the data folder: what the kernel reports about itself."""

DEFAULT_CONTEXT: Final = "default"
"""Label of the context that a project has from the start, meant where none is named."""

CALL_BYTES: Final = 32 * 2**20
"""One tool call over a WebSocket."""

ATTACHMENT_BYTES: Final = 5_000_000
"""One attached file; as base64 it fits one call, and every provider takes as much."""

INTERRUPTED: Final = "interrupted"
"""The stop reason of a block whose writer went away or was stopped."""

MAX_TOKENS: Final = "max_tokens"
"""The stop reason of an answer that reached the most tokens it may have."""

REFUSED: Final = "refusal"
"""Stop reason of an answer that the model, or its provider, would not give."""

CUT_OFF: Final = "truncated"
"""The stop reason of an answer whose connection ended before it did."""


class ExitCode(IntEnum):
    """Exit code of every command; documented in docs/command-line.md."""

    OK = 0
    FAILED = 1
    """The call was made and failed: what it asked for cannot be done."""
    USAGE = 2
    """Wrong arguments, or a terminal that cannot show the app."""
    NO_KERNEL = 3
    """No kernel could be found, reached or started."""
    FOLDER_IN_USE = 4
    """Another kernel already serves the data folder."""
    UNTRUSTED_FOLDER = 5
    """The data folder was not founded by this user here, or others may write in it."""
    PERMISSION = 6
    """A model's call needed a permission that nobody gave."""
    LIMIT = 7
    """A limit or a budget ended a model's turn."""
    INTERRUPTED = 130
    """A model's turn was interrupted, as by Ctrl+C."""


TOKEN_VARIABLE: Final = "ANTIPHON_TOKEN"
"""In the environment: the token of a kernel to join, where the address has none."""

STORE_VARIABLE: Final = "ANTIPHON_STORE"
"""In the environment: the URL of the database that a kernel shares with others."""
