"""Meaning and machine fields of each error code: the source of docs/errors.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from antiphon_kernel.types.errors import ErrorCode

DO_NOT_EDIT = "<!-- Generated from the registry: `make docs`. -->\n"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One entry of the catalogue."""

    when: str
    """When a call fails like this."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Machine fields beside `code` and `message`, and what they hold. Each is there only where it
    applies."""


_LIMIT: Final = {
    "limit": "the value of the limit",
    "limit_name": "the name of the limit: [limits.md](limits.md)",
    "found": "the value that exceeds it",
}
_LINES: Final = {
    "operation": "index of the operation in the request, counted from 0",
    "start_line": "first line of the range that was named",
    "end_line": "its end (exclusive)",
    "line_count": "lines of the text as it is",
}
_VERSION: Final = {"version": "the version of the block that the details are about"}
_PART: Final = {"block_id": "the block", "path": "the field or section: `notes/inner`"}
_REFERENCE: Final = {"reference": "what was named"}

CATALOGUE: Final[Mapping[ErrorCode, Meaning]] = {
    ErrorCode.INVALID_JSON: Meaning(
        "The call is not JSON, or contains values that JSON does not have (NaN, infinity). In a"
        " stream of calls the answer has the id null."
    ),
    ErrorCode.UNKNOWN_TOOL: Meaning(
        "There is no tool of this name.",
        {"tool": "the name", "allowed": "every name there is"},
    ),
    ErrorCode.INVALID_PARAMS: Meaning(
        "The request does not fit the tool: an unknown or missing field, a value of the wrong type"
        " or outside its range, text with half a surrogate pair.",
        {
            "tool": "the tool",
            "errors": "one `{field, expected, found, allowed}` for each wrong field, at most 20",
            "field": "the one field that is wrong",
            "expected": "what it may be",
            "found": "what it was",
            "allowed": "the values it may have",
            "limit": "the most it may be",
            "length": "code points of the text as it is",
            "path": "a file that is in the way, the field with a default that does not fit, or the"
            " part of a message: `content[2].text`",
            "problem": "what is wrong with a message (`blank_call_id`, `no_such_call`, …) or a file"
            " (`conflict`, `deleted`, `replaced`)",
            "index": "the message in its list, counted from 0",
            "rule": "the rule of the schema that is broken",
            "item": "which item of the default it is, counted from 0",
            "current_version": "the version of the context as it is",
            "call": "the tool call that would lose its result",
            "result": "the result that would lose its call",
            "first": "where the range may begin",
            "last": "where it may end",
            "block": "the block that has no such part",
            "line": "the line of the input, or of the text",
            "client": "CRDT client id of an impossible item",
            "clock": "its clock",
            "username": "the username in question",
            "role": "the role it has",
            **_REFERENCE,
            **_LINES,
            **_VERSION,
        },
    ),
    ErrorCode.BLOCK_NOT_FOUND: Meaning(
        "No block has this id, or it is in another context than the call is about.", _REFERENCE
    ),
    ErrorCode.CONTEXT_NOT_FOUND: Meaning("No context has this label or id.", _REFERENCE),
    ErrorCode.AMBIGUOUS_ID: Meaning(
        "A part of an id is the beginning or end of several ids.",
        {"candidates": "the ids that begin or end like it, at most 20"},
    ),
    ErrorCode.LINE_OUT_OF_RANGE: Meaning(
        "The call names a line that the text does not have.",
        {"line": "the line that was named", **_LINES, **_VERSION},
    ),
    ErrorCode.CONTENT_MISMATCH: Meaning(
        "The lines of an edit are not what `expected_text` says.",
        {"expected": "the text that was expected", "actual": "the text that is there"}
        | _LINES
        | _VERSION,
    ),
    ErrorCode.MERGE_CONFLICT: Meaning(
        "A fork and the context that it was forked from have changed the same places, and nobody"
        " has decided about these conflicts. Nothing was merged.",
        {"conflicts": "how many there are"},
    ),
    ErrorCode.STALE_VERSION: Meaning(
        "The version to which the call refers, by `base_version` or as it was shown, is out of"
        " date, or there is no such version.",
        {
            "lines": "the lines as they are now",
            "difference": "of drift.commit: digest of the difference as it is now",
            "diff": "that difference",
            **_LINES,
            **_VERSION,
        },
    ),
    ErrorCode.OVERLAPPING_OPERATIONS: Meaning(
        "Two operations of one edit touch the same lines.",
        {"other": "index of the other operation", **_LINES, **_VERSION},
    ),
    ErrorCode.PATCH_FAILED: Meaning(
        "Some hunks of a patch do not fit the text, or the patch cannot be read.",
        {
            "errors": "one sentence for each hunk that failed",
            "hunks": "the same for programs: `{message, hunk, line, expected, found, places}`",
        },
    ),
    ErrorCode.INVALID_REGEX: Meaning(
        "A pattern is not a valid regular expression.",
        {"problem": "what is wrong with it", "field": "the parameter that has it"},
    ),
    ErrorCode.REGEX_TIMEOUT: Meaning(
        "A regular expression ran too long and was stopped.",
        {"seconds": "how long it may run in all", "line_seconds": "and on one line"},
    ),
    ErrorCode.INVALID_TRANSITION: Meaning(
        "The block's state does not allow this: its status would go back, it takes no more appends,"
        " or an empty draft would be submitted.",
        {"status": "the status of the block", "allowed": "the statuses it may take on"},
    ),
    ErrorCode.READ_ONLY_FIELD: Meaning(
        "The schema allows only the system and sources to write this field.",
        _PART,
    ),
    ErrorCode.READ_ONLY_SECTION: Meaning(
        "The schema allows only the system and sources to write this section.",
        _PART,
    ),
    ErrorCode.SCHEMA_VIOLATION: Meaning(
        "The content would break the block's schema.",
        {
            **_PART,
            "rule": "which rule: `type`, `required`, `max_items`, `unknown_name`, …",
            "expected": "what the schema asks for, in words",
            "found": "what there would be, shortened",
            "item": "which item of a list or log, counted from 0",
            "violations": "the same for each place, at most 20, where there are several",
        },
    ),
    ErrorCode.PERMISSION_DENIED: Meaning(
        "The caller may not do this.",
        {
            "username": "the caller's username",
            "role": "the caller's role",
            "needs": "the right that the call needs",
            "allowed": "the roles that may",
            "block_id": "the block that was to be changed",
            "author": "whose draft it is, or who is credited with text",
            "close_code": "with which code the connection was closed, if the caller was dismissed",
            "file": "where what could not be sent was saved",
        },
    ),
    ErrorCode.NOTHING_TO_UNDO: Meaning(
        "The principal has no edit left to undo there.", {"username": "whose edits were meant"}
    ),
    ErrorCode.NOTHING_TO_REDO: Meaning(
        "The principal has no undone edit left to redo there.",
        {"username": "whose edits were meant"},
    ),
    ErrorCode.TOO_LARGE: Meaning(
        "A limit on sizes or numbers is exceeded.",
        {
            **_LIMIT,
            "field": "the one field that is too long",
            "line": "the line of the input, or of the text",
            "block": "the block of the input",
        },
    ),
    ErrorCode.CONTEXT_TOO_LONG: Meaning(
        "The request would leave the model no room for an answer.",
        {
            "limit": "tokens that the model takes",
            "found": "tokens that it would get, estimated",
            "path": "path of the largest item that a compaction cannot hide",
        },
    ),
    ErrorCode.RATE_LIMITED: Meaning(
        "The caller makes more requests in a period of time than are allowed.",
    ),
    ErrorCode.EPOCH_MISMATCH: Meaning(
        "The replica belongs to another document than the one that now has this context's name."
    ),
    ErrorCode.GAP: Meaning(
        "An update builds on something that has not arrived.",
        {"client": "CRDT client id of what is missing", "clock": "its clock"},
    ),
    ErrorCode.NO_KERNEL: Meaning(
        "No kernel answers, or it ended before it answered; in this case the call may have taken"
        " effect.",
        {"data": "the kernel's data folder"},
    ),
    ErrorCode.NOT_OWNER: Meaning(
        "Another kernel on the same database has the context. It could not be reached, or it took"
        " the context while this one was cut off. Nothing of the call was acknowledged: call again."
    ),
    ErrorCode.UNTRUSTED_FOLDER: Meaning(
        "The command line does not use a data folder that this user did not found on this machine,"
        " or in which others may write. No tool fails with this error.",
        {"data": "the data folder"},
    ),
    ErrorCode.STORAGE_FAILED: Meaning(
        "Data could not be written, or stored data cannot be read. Nothing of the call was"
        " acknowledged.",
        {
            "path": "the file",
            "store": "host, port and name of the database",
            "found": "what it holds",
            "copy": "where all that was saved has been copied to, if the file was deleted",
        },
    ),
}
"""Every code there is."""
