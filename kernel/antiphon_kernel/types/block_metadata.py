"""Keys of a block's `metadata` that mean something to the kernel: of turns, cuts and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.records import BlockHeader

MAX_ROUNDS: Final = "max_rounds"
"""Of a message: rounds that a turn which answers it may have, if fewer than others."""

USAGE: Final = "usage"
"""Of the last block of a round: the tokens that the provider counted, and their price."""

RETRY: Final = "retry"
"""Of a block of kind error: the request is sent again; `attempt` of `attempts`, `kind` of the
error, `seconds` and the time `until` then. The block is running until the provider answers."""

ERROR_KIND: Final = "error_kind"
"""Of a block of kind error that ends a turn: kind of the provider's error, or of the limit."""

CAN_RETRY: Final = "can_retry"
"""Of a block of kind error that ends a turn: true if `turn.retry` may go on with it."""

QUESTION: Final = "question"
"""Of a call: what an MCP server asks people; `server`, `message`, and `fields` of a form or the
`url` that is to be opened. Once it is answered, `action` says how, and `by` who."""

CALL_SIGNATURE: Final = "call_signature"
"""Of a call: text of the provider's that has to come back with it."""

AGENT_CALL: Final = "agent_call"
"""Of a call of an agent: its `kind` and `title` as the agent says them, and the `locations` that it
is about, each with a `path` and perhaps a `line`, from 0."""

CHOICES: Final = "choices"
"""Of a call that an agent asks about: what it offers, in its own words, by the decision that
chooses it (`once`, `always`, `no`); and the `tool` whose permission decides."""

FILE_REFERENCE: Final = "reference"
"""Of a block of kind file without text: the `context` that the file is, the `version` of it that
the block refers to, and perhaps lines of it, from `start` to `end`."""

FINDINGS: Final = "findings"
"""Of a file: the `rows` that checks and language servers have found in it, each with `line` (from
0), `severity`, `message`, `source`, and perhaps `column` and `code`."""

DRIFT: Final = "drift"
"""Of a block of kind drift: where it came from, as `types.drift.DriftOrigin` says it. Of a block
that came with one: the id of the drift."""

CUT_OUT: Final = "cut_out"
"""Key of a block's metadata; it counts while the block is excluded."""

EXCLUDED_BEFORE: Final = "excluded_before"
"""Of a block that the undo of a drift has cut out: whether it was excluded before."""


def open_question(header: BlockHeader) -> Mapping[str, Any] | None:
    """Return what a server asks in the middle of a call, while people may answer it."""
    question = header.metadata.get(QUESTION)
    return question if is_asked({"status": header.status, "metadata": header.metadata}) else None


def is_asked(header: Mapping[str, Any]) -> bool:
    """Return whether a server waits for an answer, by the JSON of a header."""
    question = header.get("metadata", {}).get(QUESTION)
    is_open = isinstance(question, dict) and "action" not in question
    return is_open and header["status"] == Status.RUNNING


def agent_call(header: BlockHeader) -> Mapping[str, Any]:
    """Return what an agent says of a call of its own."""
    said = header.metadata.get(AGENT_CALL)
    return said if isinstance(said, dict) else {}


def is_cut_out(header: BlockHeader) -> bool:
    """Return whether a block is cut out."""
    return header.excluded and header.metadata.get(CUT_OUT) is True


SUMMARY_TYPE: Final = "conv.range.summary"
"""Value of `metadata.type` of a summary."""


class SummaryFields(Protocol):
    """Fields of a block by which a summary is known."""

    @property
    def role(self) -> Role | str: ...
    @property
    def status(self) -> Status | str: ...
    @property
    def excluded(self) -> bool: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


def stands_for_earlier(block: SummaryFields, text: str) -> bool:
    """Return whether models may read from a block with this text on: it is a finished summary."""
    return (
        block.role == Role.SYSTEM
        and block.metadata.get("type") == SUMMARY_TYPE
        and block.status in (Status.DONE, Status.ERROR)
        and not block.excluded
        and DRIFT not in block.metadata
        and bool(text.strip())
    )
