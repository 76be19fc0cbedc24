"""Common part of all tools that write into a block: errors and result."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.contexts import CommitHandle, Context
from antiphon_kernel.registry import REFERENCES, Result
from antiphon_kernel.types.errors import ErrorCode

WRITING: Final = (
    *REFERENCES,
    ErrorCode.READ_ONLY_FIELD,
    ErrorCode.READ_ONLY_SECTION,
    ErrorCode.TOO_LARGE,
)
"""What a tool that writes into a text or a content can fail with."""


class WriteResult(Result):
    """Number of changes of the block."""

    version: int
    context_version: int


async def wait_persisted(context: Context, block: str, written: CommitHandle) -> WriteResult:
    """The answer about one block, once a change is on disk.

    Raises:
        AntiphonError: storage_failed.
    """
    await written.saved()
    version = written.versions.get(block, context.version(block))
    return WriteResult(version=version, context_version=written.seq)
