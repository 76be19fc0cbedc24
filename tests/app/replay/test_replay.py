"""Replays as they are read: their pauses and marks, and lines that are none."""

from __future__ import annotations

import re
from math import inf

import pytest

from antiphon.replay.replay import Replay
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.replay import ChangedHeader, SplicedText
from tests.app.replay.lines import HEADER, PEOPLE, change, created, presence, written

CALL = {"kind": "tool_call", "role": "model", "tool_name": "shell"}
STORY = (
    HEADER,
    *PEOPLE,
    presence(0, "amy", "idle"),
    change(1, "amy", created("b1", "amy", status="pending"), at=10),
    change(2, "amy", SplicedText(block="b1", offset=0, inserted="Hello\nyou"), at=100_000),
    change(3, "amy", ChangedHeader(block="b1", fields={"status": "done"}), at=100_500),
    presence(100_600, "aria", "streaming", block="b1", cursor=1),
    change(4, "aria", created("b2", "aria", **CALL), at=100_700),
    change(5, "aria", ChangedHeader(block="b2", fields={"status": "running"}), at=100_800),
    presence(100_900, "amy", "typing", block="b1", cursor=2),
    presence(100_950, "amy", "idle", session="amy-2"),
    presence(100_960, "amy", None, session="amy-2"),
    presence(200_000, "amy", None),
)
MARKS = [
    ("come", "amy comes"),
    ("message", "amy: Hello you"),
    ("call", "aria calls shell"),
    ("leave", "amy leaves"),
]


@pytest.mark.parametrize(
    ("max_pause", "times"),
    [(inf, [0, 100_500, 100_700, 200_000]), (2.0, [0, 2_510, 2_710, 4_970])],
)
def test_marks_are_where_something_was_sent_called_or_somebody_came_or_left(
    max_pause: float, times: list[int]
) -> None:
    replay = Replay.read(written(*STORY), max_pause=max_pause)
    assert [(one.kind, one.title) for one in replay.marks] == MARKS
    assert [one.at_ms for one in replay.marks] == times
    assert replay.duration_ms == times[-1]


*BEGUN, _END = written(HEADER, *PEOPLE, change(1, "amy", created("b1", "amy", "one")))
COLOUR = ChangedHeader(block="b1", fields={"colour": 1})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "A replay begins with a header"),
        ([b"# Title\n"], "Line 1 is none of a replay"),
        (BEGUN[1:], "A replay begins with a header"),
        (BEGUN, "The replay has been broken off"),
        ([*BEGUN, b'{"type": "change"}\n'], "Line 6 is none of a replay"),
        (BEGUN + written(change(2, "amy", created("b2", "zoe", "?"))), "Line 6 does not fit"),
        (BEGUN + written(change(2, "amy", COLOUR)), "Line 6 does not fit"),
        (
            BEGUN + written(change(2, "amy", SplicedText(block="b1", offset=2, deleted=2))),
            "Line 6 does not fit: block b1 has no code points 2 to 4",
        ),
        (
            BEGUN + written(change(2, "amy", created("b2", "zoe", role="model"))),
            "Line 6 does not fit: nobody is named as author of b2",
        ),
    ],
)
def test_what_is_no_replay_is_refused(lines: list[bytes], said: str) -> None:
    with pytest.raises(AntiphonError, match=re.escape(said)):
        Replay.read(lines)
