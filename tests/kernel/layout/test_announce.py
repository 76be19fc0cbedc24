"""The announcement as text: a value in, the same bytes out."""

from __future__ import annotations

from antiphon_kernel.layout import Announcement, budget_text, change_text, reader_text
from antiphon_kernel.layout.text_forms import announcement_text

NOW = 1_770_603_271_112
WHOLE = Announcement(
    time=NOW,
    round=3,
    max_rounds=20,
    budget=(budget_text(12_300, 200_000, "tokens"), budget_text(0.125, 1, "USD")),
    present=(
        reader_text("amy", "ar:turn_1_0a1b2c.user.prompt", "typing"),
        reader_text("bo", "default.amy.7"),
        reader_text("cy"),
    ),
    changes=(
        change_text("default.amy.1", "amy", [(2, 4), (9, 9)], 12),
        change_text("default.amy.1", "bo", [(0, 0)]),
        change_text("default.amy.2", "bo"),
    ),
    unlisted=3,
)
TEXT = """\
[ANNOUNCE]
time: 2026-02-09T02:14:31.112Z
round: 3 of 20
budget: 12,300 of 200,000 tokens, 0.125 of 1 USD
here: amy (typing in ar:turn_1_0a1b2c.user.prompt), bo (in default.amy.7), cy
changed by others since you last looked (lines count from 0):
- default.amy.1 by amy: lines 2-4, 9, 12 characters removed
- default.amy.1 by bo: line 0
- default.amy.2 by bo: its content
- and 3 more blocks"""


def test_announcement_text_of_everything_is_the_stated_form() -> None:
    assert announcement_text(WHOLE) == announcement_text(WHOLE) == TEXT


def test_announcement_text_of_nothing_says_the_time_and_who_is_here() -> None:
    said = announcement_text(Announcement(NOW))
    assert said == "[ANNOUNCE]\ntime: 2026-02-09T02:14:31.112Z\nhere: nobody else"


def test_announcement_text_of_many_places_is_bounded() -> None:
    said = change_text("b", "amy", [(one * 2, one * 2) for one in range(1_000)])
    assert said.endswith("lines 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 990 more places")
