"""One closed catalogue of errors, the same for every caller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from antiphon_kernel.types.quoting import truncate


class ErrorCode(StrEnum):
    """Every code a call can fail with."""

    INVALID_JSON = "invalid_json"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_PARAMS = "invalid_params"
    BLOCK_NOT_FOUND = "block_not_found"
    CONTEXT_NOT_FOUND = "context_not_found"
    AMBIGUOUS_ID = "ambiguous_id"
    LINE_OUT_OF_RANGE = "line_out_of_range"
    CONTENT_MISMATCH = "content_mismatch"
    MERGE_CONFLICT = "merge_conflict"
    STALE_VERSION = "stale_version"
    OVERLAPPING_OPERATIONS = "overlapping_operations"
    PATCH_FAILED = "patch_failed"
    INVALID_REGEX = "invalid_regex"
    REGEX_TIMEOUT = "regex_timeout"
    INVALID_TRANSITION = "invalid_transition"
    READ_ONLY_FIELD = "read_only_field"
    READ_ONLY_SECTION = "read_only_section"
    SCHEMA_VIOLATION = "schema_violation"
    PERMISSION_DENIED = "permission_denied"
    NOTHING_TO_UNDO = "nothing_to_undo"
    NOTHING_TO_REDO = "nothing_to_redo"
    TOO_LARGE = "too_large"
    CONTEXT_TOO_LONG = "context_too_long"
    RATE_LIMITED = "rate_limited"
    EPOCH_MISMATCH = "epoch_mismatch"
    GAP = "gap"
    NO_KERNEL = "no_kernel"
    NOT_OWNER = "not_owner"
    UNTRUSTED_FOLDER = "untrusted_folder"
    STORAGE_FAILED = "storage_failed"


class AntiphonError(Exception):
    """A call failed in a way the caller can understand and act on.

    `message` is one sentence: what was expected, what was found, what to do. `details` carries
    the machine-readable fields (operation index, allowed values, current lines, ...). `code` is a
    plain string only when a newer kernel has sent one that this version does not know.

    Everything that reads or writes a file of the kernel can fail with storage_failed; functions
    say so only beside other errors.
    """

    def __init__(self, code: ErrorCode | str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code: ErrorCode | str = code
        self.message = message
        self.details: Mapping[str, Any] = details

    @classmethod
    @contextmanager
    def with_details(cls, **details: Any) -> Iterator[None]:
        """Add details to the errors that are raised inside."""
        try:
            yield
        except cls as error:
            error.details = {**error.details, **details}
            raise

    def as_json(self) -> dict[str, Any]:
        """The error as every endpoint sends it: `{code, message, ...details}`, without nulls."""
        details = {name: value for name, value in self.details.items() if value is not None}
        return {"code": str(self.code), "message": self.message, **details}


class NotOwnerError(AntiphonError):
    """Another kernel on the same database has the context."""

    def __init__(self, message: str, address: str | None = None) -> None:
        """`address`: URL at which other kernels reach the one that has it, if one does."""
        super().__init__(ErrorCode.NOT_OWNER, message)
        self.address = address


def context_has_moved() -> NotOwnerError:
    """Return the error for who uses a context that this kernel gives up, or has lost."""
    return NotOwnerError("Another kernel has the context from now on: call once more.")


def invalid_params(message: str, **details: Any) -> AntiphonError:
    """Return the error for a request that cannot be carried out as it is stated."""
    return AntiphonError(ErrorCode.INVALID_PARAMS, message, **details)


def storage_failed(message: str, **details: Any) -> AntiphonError:
    """Return the error for files or a database that cannot be read or written."""
    return AntiphonError(ErrorCode.STORAGE_FAILED, message, **details)


def no_kernel(message: str, **details: Any) -> AntiphonError:
    """Return the error for a kernel that cannot be reached, or has gone away."""
    return AntiphonError(ErrorCode.NO_KERNEL, message, **details)


def permission_denied(message: str, **details: Any) -> AntiphonError:
    """Return the error for somebody who may not do what they ask for."""
    return AntiphonError(ErrorCode.PERMISSION_DENIED, message, **details)


def block_not_found(message: str, reference: str) -> AntiphonError:
    """Return the error for a reference to a block that there is not."""
    return AntiphonError(ErrorCode.BLOCK_NOT_FOUND, message, reference=truncate(reference))


def kernel_is_closing() -> AntiphonError:
    """Return the error for new and present callers when a kernel ends."""
    return AntiphonError(ErrorCode.NO_KERNEL, "The kernel is closing: call the next one.")
