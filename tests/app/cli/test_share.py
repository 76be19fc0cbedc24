from __future__ import annotations

from antiphon.cli.share import presence_lines


def test_presence_lines_count_sessions_of_one_person_by_one_way() -> None:
    ways = ((5, "unix", "s-aaaaaaaa"), (3, "unix", "s-bbbbbbbb"), (4, "ssh", "s-cccccccc"))
    sessions = [
        {"username": "bo", "role": "editor", "via": via, "since": f"2026-01-01T00:0{at}:00.000Z"}
        | {"session": session}
        for at, via, session in ways
    ]
    assert presence_lines(sessions, 4) == [
        "bo    editor  over unix  since 2026-01-01 00:03Z  2 sessions",
        "bo    editor  over ssh   since 2026-01-01 00:04Z  session cccccccc",
    ]
