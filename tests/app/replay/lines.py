"""Lines of replays, written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayLine,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    write_replay_line,
)

HEADER = ReplayHeader(context_id="ctx", label="tale", started=1_700_000_000_000)
PEOPLE = (
    ReplayPrincipal(id="amy", username="amy", kind="human", colour=0),
    ReplayPrincipal(id="ben", username="ben", kind="human", colour=1),
    ReplayPrincipal(id="aria", username="aria", kind="model", colour=2),
)
APART_MS = 100


def written(*lines: ReplayLine) -> list[bytes]:
    """Return lines, and the last one of a replay."""
    return [write_replay_line(one).encode() for one in (*lines, ReplayEnd(changes=0))]


def created(block: str, author: str, text: str = "", **header: str) -> CreatedBlock:
    fields = {"kind": "text", "role": "user", "status": "done", "created": "", **header}
    return CreatedBlock(block=block, header={"order": block, "author": author, **fields}, text=text)


def change(number: int, by: str, *edits: ReplayEdit, at: int | None = None) -> ReplayChange:
    at = number * APART_MS if at is None else at
    return ReplayChange(at=at, version=number, by=by, operation="sync", edits=list(edits))


def presence(at: int, by: str, activity: str | None, **place: int | str) -> ReplayPresence:
    return ReplayPresence.model_validate(
        {"at": at, "session": f"{by}-1", "by": by, "activity": activity, **place}
    )


def long_replay(messages: int, words: int) -> list[bytes]:
    """Messages of a person, each with an answer of so many words."""
    return written(HEADER, *PEOPLE, *_conversation(messages, words))


def _conversation(messages: int, words: int) -> Iterator[ReplayLine]:
    number = count(1)
    for at in range(messages):
        asked, answer = f"b{at:04}a", f"b{at:04}b"
        yield change(next(number), "amy", created(asked, "amy", status="pending"))
        for offset, sign in enumerate("why?"):
            edit = SplicedText(block=asked, offset=offset, inserted=sign)
            yield change(next(number), "amy", edit)
        yield change(next(number), "amy", ChangedHeader(block=asked, fields={"status": "done"}))
        made = created(answer, "aria", role="model", status="running", parent=asked)
        yield change(next(number), "aria", made)
        for word in range(words):
            edit = SplicedText(block=answer, offset=word * 5, inserted="word ")
            yield change(next(number), "aria", edit)
        yield change(next(number), "aria", ChangedHeader(block=answer, fields={"status": "done"}))
