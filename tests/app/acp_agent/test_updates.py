"""Events of blocks as updates of a session, and their order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from antiphon.acp_agent.updates import SessionUpdates
from antiphon.followed_block import REST_SECONDS


class Told:
    """Blocks that change, and the updates that a client gets of it."""

    def __init__(self) -> None:
        self.updates = SessionUpdates(Path("/project"))
        self.updates.me, self.updates.model = "ada", "aria"
        self.headers: dict[str, dict[str, Any]] = {}
        self.versions: Counter[str] = Counter()
        self.now = 0.0

    def create(
        self, block: str, text: Any = "", rendered: str | None = None, **header: Any
    ) -> list[Any]:
        who = block.split(".")[0]
        role = "model" if who in ("aria", "bot") else "user"
        given = {"username": who, "name": block, "kind": "text", "role": role, "status": "running"}
        self.headers[block] = given | header
        return self.event(block, rendered, content=text, header=self.headers[block])

    def insert(self, block: str, offset: int, text: str, delete: int = 0) -> list[Any]:
        splice = {"offset": offset, "delete_count": delete, "insert": text}
        return self.event(block, splices=[splice], username="bo")

    def change(self, block: str, **header: Any) -> list[Any]:
        self.headers[block] = self.headers[block] | header
        return self.event(block, splices=[], header=self.headers[block])

    def event(self, block: str, rendered: str | None = None, **fields: Any) -> list[Any]:
        self.versions[block] += 1
        event = {"block_id": block, "version": self.versions[block], **fields}
        return [shown(one) for one in self.updates.take(event, self.now, rendered)]

    def rest(self) -> list[Any]:
        self.now += REST_SECONDS
        return [shown(one) for one in self.updates.flush(self.now)]


def shown(update: Any) -> tuple[Any, ...]:
    """Return what a test says of an update: its kind, and what is in it."""
    kind = update.session_update
    if kind in ("tool_call", "tool_call_update"):
        fields = {key: value for key, value in update if value is not None}
        del fields["session_update"]
        return kind, fields.pop("tool_call_id"), fields
    return kind, getattr(update.content, "text", update.content.type)


def chunk(text: str, kind: str = "agent_message") -> list[Any]:
    return [(f"{kind}_chunk", text)]


def test_other_text_waits_until_the_one_that_is_written_is_over() -> None:
    told = Told()
    assert told.create("aria.1", "One ") == chunk("One ")
    assert told.create("bo.1", "And me?", status="done") == []
    assert told.create("bot.1", "Well.") == []
    assert told.insert("aria.1", 4, "two.") == chunk("two.")
    after = [*chunk("bo: And me?", "user_message"), *chunk("**bot:** Well.")]
    assert told.change("aria.1", status="done") == after
    assert told.insert("bot.1", 5, " Yes.") == chunk(" Yes.")
    told.change("bot.1", status="done")
    assert told.create("bot.2", "Go on.", status="done") == chunk("Go on.")
    assert told.create("aria.2", "Me again.", status="done") == chunk("**aria:** Me again.")


def test_text_that_is_excluded_while_it_is_written_keeps_nobody_waiting() -> None:
    told = Told()
    told.create("aria.1", "One ")
    assert told.create("bot.1", "Well.") == []
    assert told.change("aria.1", excluded=True) == chunk("**bot:** Well.")
    assert told.insert("aria.1", 4, "secret") == []
    assert told.change("bot.1", status="done") == []
    assert told.change("aria.1", excluded=False) == chunk("**aria:** secret")


def test_drafts_and_models_notes_are_not_told_and_own_messages_without_a_name() -> None:
    told = Told()
    assert told.create("ada.1", "Not yet") == []
    assert told.insert("ada.1", 7, ".") == []
    assert told.create("ada.2", "Mine.", status="done") == chunk("Mine.", "user_message")
    assert told.create("system.1", "A summary", role="system", status="done") == []
    error = told.create("aria.1", "No money.", kind="error", status="error")
    assert error == chunk("Error: No money.")
    for name, message in (("bo.1", "ada.1"), ("bo.2", "ada.2")):
        link = [("user_message_chunk", "resource_link")] if message == "ada.2" else []
        assert told.create(name, kind="file", status="done", parent_id=message) == link
    sent = [*chunk("Not yet.", "user_message"), ("user_message_chunk", "resource_link")]
    assert told.change("ada.1", status="done") == sent


def test_edit_is_told_once_it_has_come_to_rest() -> None:
    told = Told()
    lines = [f"line {number}\n" for number in range(20)]
    told.create("aria.1", "".join(lines), status="done")
    assert told.insert("aria.1", len("".join(lines[:10])), "A ") == []
    assert told.insert("aria.1", len("".join(lines)) + 2, "At the end.") == []
    ((kind, _, fields),) = told.rest()
    assert kind == "tool_call" and fields["title"] == "bo edited aria.1"
    assert (fields["kind"], fields["status"]) == ("edit", "completed")
    difference = fields["content"][0]
    assert difference.old_text == "".join(lines)
    assert difference.new_text.split("\n")[10] == "A line 10"
    assert difference.new_text.endswith("\nAt the end.")
    told.insert("aria.1", 0, "x")
    told.insert("aria.1", 0, "", delete=1)
    assert told.rest() == []


def test_output_that_grows_is_told_now_and_then_and_whole_at_the_end() -> None:
    told = Told()
    call: dict[str, Any] = {"kind": "tool_call", "tool_name": "shell", "input": {"command": "make"}}
    ((kind, name, fields),) = told.create("aria.1", "make", status="pending", **call)
    assert (kind, name, fields["title"]) == ("tool_call", "aria.1", "shell make")
    assert (fields["kind"], fields["status"], fields["content"]) == ("execute", "pending", [])
    running = told.change("aria.1", status="running")
    assert running == [("tool_call_update", "aria.1", {"status": "in_progress"})]
    assert told.create("aria.2", "a\n", kind="tool_result", parent_id="aria.1") == []
    assert told.insert("aria.2", 2, "```\n") == []
    ((_, _, fields),) = told.rest()
    assert fields["content"][0].content.text == "````\na\n```\n````"
    told.insert("aria.2", 6, "b")
    ((_, _, fields),) = told.change("aria.2", status="done")
    assert fields["content"][0].content.text == "````\na\n```\nb\n````"
    ended = told.change("aria.1", status="error", is_error=True)
    assert ended == [("tool_call_update", "aria.1", {"status": "failed"})]


def test_result_that_was_moved_above_its_call_is_told_with_it() -> None:
    told = Told()
    assert told.create("aria.2", "a", kind="tool_result", parent_id="aria.1") == []
    ((_, _, fields),) = told.create("aria.1", kind="tool_call", tool_name="shell")
    assert fields["content"][0].content.text == "```\na\n```"


def test_call_of_an_agent_is_told_in_its_words_and_a_change_as_a_difference() -> None:
    told = Told()
    about = {"kind": "edit", "title": "Edit a.py", "locations": [{"path": "a.py", "line": 2}]}
    call: dict[str, Any] = {
        "kind": "tool_call",
        "tool_name": "file_edit",
        "metadata": {"agent_call": about},
    }
    text = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    ((_, _, fields),) = told.create("bot.1", text, **call)
    assert (fields["title"], fields["kind"]) == ("Edit a.py", "edit")
    place, difference = fields["locations"][0], fields["content"][0]
    assert (place.path, place.line) == ("/project/a.py", 3)
    assert (difference.path, difference.old_text, difference.new_text) == (
        *("/project/a.py", "one\ntwo\n"),
        "one\n2\n",
    )
    ((_, _, fields),) = told.create("bot.2", "--- no patch", **call)
    assert fields["content"] == []


def test_question_of_a_server_is_in_its_call_until_it_is_answered() -> None:
    told = Told()
    call: dict[str, Any] = {"kind": "tool_call", "tool_name": "tracker__add"}
    question = {"server": "tracker", "message": "Which one?", "fields": []}
    ((_, _, fields),) = told.create("aria.1", **call, metadata={"question": question})
    assert fields["content"][0].content.text.startswith("tracker asks: Which one? It is")
    answered = {"question": {**question, "action": "accept"}}
    ((_, _, fields),) = told.change("aria.1", metadata=answered)
    assert fields["content"] == []


def test_list_of_an_agent_is_told_and_its_changes_once_they_have_come_to_rest() -> None:
    told = Told()
    steps = "- [ ] Look\n- [ ] Test\n"
    assert told.create("aria.1", [], steps, status="done") == chunk(steps)
    assert told.event("aria.1", steps.replace("[ ]", "[x]", 1), splices=[]) == []
    ((_, _, fields),) = told.rest()
    assert fields["content"][0].old_text == steps
