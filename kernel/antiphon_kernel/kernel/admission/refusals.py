"""How raw updates are refused."""

from __future__ import annotations

from antiphon_kernel.types.errors import AntiphonError, ErrorCode


def denied(message: str) -> AntiphonError:
    """The client may not do this."""
    return AntiphonError(ErrorCode.PERMISSION_DENIED, message)


def tools_only() -> AntiphonError:
    """A client has touched what only tools write."""
    return denied(
        "A connected client edits content and creates its own drafts; header fields are"
        " written by tools: call block.status, block.collapse or the like."
    )
