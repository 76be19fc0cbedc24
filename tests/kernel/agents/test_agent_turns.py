"""Turns of agents: what they say becomes blocks, and what they are told."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.agents.agent_stage import OpenAgent, open_agent
from tests.waiting import until


@pytest.fixture
async def stage_of(tmp_path: Path) -> AsyncIterator[OpenAgent]:
    async with AsyncExitStack() as stack:
        yield partial(open_agent, tmp_path, stack)


def text(said: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": said}}


PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)

EDITED = {"type": "diff", "path": "a.py", "oldText": "one\ntwo\n", "newText": "one\n2\n"}
PART = {**EDITED, "oldText": "two", "newText": "2"}
OTHER = {**EDITED, "oldText": "two", "newText": "3"}
DIFFERENCE = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"

SAID = (
    (
        [{"think": "Hm"}, {"think": "m."}, {"say": "Hel"}, {"say": "lo."}],
        [("thinking", "done", "Hmm."), ("text", "done", "Hello.")],
    ),
    (
        [
            {"update": {"sessionUpdate": "agent_message_chunk", "messageId": one, "content": part}}
            for one, part in (
                ("1", {"type": "text", "text": "See "}),
                ("1", {"type": "image", "data": "AA==", "mimeType": "image/png"}),
                ("1", {"type": "resource_link", "name": "a", "uri": "file:///a"}),
                ("2", {"type": "text", "text": "Next."}),
            )
        ],
        [("text", "done", "See [image: image/png]\n[a](file:///a)\n"), ("text", "done", "Next.")],
    ),
    (
        [
            {"call": {"toolCallId": "c", "title": "Look", "status": "pending", "kind": "read"}},
            {"call_update": {"toolCallId": "c", "status": "in_progress"}},
            {"call_update": {"toolCallId": "c", "content": [text("one")]}},
            {"call_update": {"toolCallId": "c", "content": [text("one\n"), text("two")]}},
            {"call_update": {"toolCallId": "c", "status": "completed"}},
            {"call": {"toolCallId": "d", "title": "Run", "kind": "execute", "status": "pending"}},
            {"call_update": {"toolCallId": "d", "rawInput": {"command": "ls -l"}}},
            {
                "call_update": {
                    "toolCallId": "d",
                    "status": "failed",
                    "rawOutput": {"output": "No."},
                }
            },
            {"call_update": {"toolCallId": "d", "content": [text("late")]}},
        ],
        [
            ("tool_call", "done", ""),
            ("tool_result", "done", "one\ntwo"),
            ("tool_call", "error", "ls -l"),
            ("tool_result", "error", "No."),
        ],
    ),
    (
        [
            {"call": {"toolCallId": "c", "title": "Edit", "kind": "edit", "content": [EDITED]}},
            {"call_update": {"toolCallId": "c", "title": "a.py", "content": [PART]}},
            {"call_update": {"toolCallId": "c", "status": "completed"}},
        ],
        [("tool_call", "done", DIFFERENCE), ("tool_result", "done", "")],
    ),
    (
        [
            {"call": {"toolCallId": "c", "title": "E", "content": [EDITED]}},
            {"call_update": {"toolCallId": "c", "status": "completed", "content": [OTHER]}},
        ],
        [
            ("tool_call", "done", "--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n-two\n+3\n"),
            ("tool_result", "done", ""),
        ],
    ),
    (
        [
            {"call_update": {"toolCallId": "c", "title": "Odd", "content": [text("first")]}},
            {"call_update": {"toolCallId": "c", "content": [text("other")]}},
            {"say": "Bye."},
        ],
        [
            ("tool_call", "error", ""),
            (
                "tool_result",
                "error",
                "other\nThe turn ended before the agent said what came of this call.",
            ),
            ("text", "done", "Bye."),
        ],
    ),
)


async def test_what_an_agent_says_becomes_blocks(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[steps for steps, _ in SAID])
    for _, shown in SAID:
        assert await stage.ask() == shown
        author = stage.kernel.members.find(stage.headers()[-1].author)
        assert (author.username, author.kind) == ("bot", PrincipalKind.AGENT)


async def test_call_that_writes_much_is_kept_in_part(stage_of: OpenAgent) -> None:
    much, most = "line\n" * 50_000, "x" * 1_100_000
    change = {"type": "diff", "path": "a.py", "newText": much}
    call = {"toolCallId": "c", "title": "Write", "kind": "edit", "rawInput": {"content": most}}
    said = {**call, "content": [change, text(much)], "status": "completed"}
    stage = await stage_of(prompts=[[{"call": said}]])
    (_, _, shown), (_, _, result) = await stage.ask()
    assert stage.of_kind(BlockKind.TOOL_CALL)[0].input == "{}"
    assert len(shown) < 210_000 and len(result) < 210_000


async def test_call_says_its_kind_and_where_it_is_and_tokens_are_counted(
    stage_of: OpenAgent,
) -> None:
    stage = await stage_of()
    inside = str(stage.kernel.project / "src" / "a.py")
    places = [{"path": inside, "line": 3}, {"path": "/etc/hosts"}]
    call = {"toolCallId": "c", "title": "Read\n a.py", "kind": "read", "locations": places}
    usage = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10, "cachedReadTokens": 5}
    end = {"result": {"stopReason": "end_turn", "usage": usage}}
    stage.script(prompts=[[{"call": {**call, "rawInput": {"path": inside}}}, {"say": "So."}, end]])
    await stage.ask()
    (used,) = await stage.kernel.usage.all()
    assert (used.used.input_tokens, used.used.cached_tokens, used.used.tokens) == (20, 5, 30)
    assert stage.headers()[-1].metadata["usage"]["output_tokens"] == 10
    (header,) = stage.of_kind(BlockKind.TOOL_CALL)
    assert (header.tool_name, header.input) == ("Read a.py", json.dumps({"path": inside}))
    assert header.metadata["agent_call"] == {
        "kind": "read",
        "title": "Read a.py",
        "locations": [{"path": "src/a.py", "line": 2}, {"path": "/etc/hosts"}],
    }


def plan(*steps: str) -> dict[str, Any]:
    words = {" ": "pending", "~": "in_progress", "x": "completed"}
    entries = [{"content": one[1:], "status": words[one[0]], "priority": "high"} for one in steps]
    return {"update": {"sessionUpdate": "plan", "entries": entries}}


async def test_plan_is_one_list_that_is_kept_up_to_date(stage_of: OpenAgent) -> None:
    steps = [plan(" read", " write"), {"say": "Go."}, {"until_file": "on"}]
    steps += [plan("xread", "~write", " test")]
    stage = await stage_of(prompts=[steps])
    await stage.submit("@bot Go.")
    await until(lambda: len(stage.headers()) == 3)
    listed = stage.headers()[1].id
    read = await stage.call("block.get", block_id=listed)
    assert read["value"] == ["[ ] read", "[ ] write"]
    await stage.let("on")
    await stage.runner.wait_idle()
    assert (await stage.call("block.render", block_id=listed))["text"] == (
        "- [x] read\n- [ ] write (in progress)\n- [ ] test\n"
    )
    assert [str(one.status) for one in stage.headers()[1:]] == ["done", "done"]


ENDS = (
    ("max_tokens", [{"say": "So"}], ("text", "So", "max_tokens")),
    ("refusal", [{"say": "No"}], ("text", "No", "refusal")),
    ("refusal", [], ("error", "The agent has ended without an answer: refusal.", None)),
    ("end_turn", [], ("error", "The agent has ended without an answer: end_turn.", None)),
    (
        "max_turn_requests",
        [{"say": "So"}],
        (
            "error",
            "The agent has stopped: it has made as many requests as it makes in one turn.",
            None,
        ),
    ),
)


async def test_reason_of_an_end_is_said(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[*steps, {"stop": reason}] for reason, steps, _ in ENDS])
    for _, _, shown in ENDS:
        *_, (kind, _, said) = await stage.ask()
        assert (kind, said, stage.headers()[-1].stop_reason) == shown


async def test_chunks_go_on_behind_what_a_person_types(stage_of: OpenAgent) -> None:
    steps = [{"say": "The cat sat\n"}, {"until_file": "on"}, {"say": "on the mat.\n"}]
    stage = await stage_of(prompts=[steps, [{"say": "I see."}]])
    await stage.submit("@bot Tell.")
    await until(lambda: stage.shown()[1:] == [("text", "running", "The cat sat\n")])
    block = stage.headers()[1].id
    await stage.call("block.splice", block_id=block, offset=4, delete_count=3, insert="dog")
    await stage.let("on")
    await stage.runner.wait_idle()
    assert stage.text(block) == "The dog sat\non the mat.\n"
    bo = await stage.actor("bo")
    await stage.submit("Nobody is asked here.", bo)
    await stage.ask("And now?")
    name = stage.context.block_name(block)
    difference = (
        f"--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n-The cat sat\n+The dog sat\n on the mat."
    )
    assert stage.prompts()[0] == "Tell."
    assert [one.strip("\n") for one in stage.prompts()[1].split("\n\n", 3)] == [
        "Since you have last looked:",
        "bo: Nobody is asked here.",
        f"amy changed your text:\n{difference}",
        "The message to you:\n\nAnd now?",
    ]
    await stage.ask("/again")
    assert stage.prompts()[2] == "/again"


@pytest.mark.parametrize("can", [True, False])
async def test_files_of_a_message_come_with_it(can: bool, stage_of: OpenAgent) -> None:
    prompts = {"embeddedContext": can, "image": can}
    stage = await stage_of(capabilities={"promptCapabilities": prompts}, prompts=[[{"say": "."}]])
    project = stage.kernel.project
    (project / "a.py").write_text("one\ntwo\nthree\n")
    (project / "notes.txt").write_text("Mind the gap.\n")
    (project / "dot.png").write_bytes(b64decode(PIXEL))
    message = await stage.draft("@bot Look.")
    files = [{"path": "notes.txt"}, {"path": "dot.png"}]
    await stage.call("block.attach", block_id=message, files=files)
    await stage.call("block.create", kind="file", parent_id=message, path="a.py#L2-L3")
    await stage.call("block.status", block_id=message, status="done")
    await stage.runner.wait_idle()
    (sent,) = stage.received("session/prompt")
    notes = {"uri": "attachment:///notes.txt", "text": "Mind the gap.\n", "mimeType": "text/plain"}
    said, *files = sent["prompt"]
    assert said == {"type": "text", "text": "Look."}
    assert files == [
        {"type": "resource", "resource": notes}
        if can
        else {"type": "text", "text": "Attached notes.txt:\nMind the gap.\n"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        if can
        else {"type": "text", "text": "[attached file: dot.png]"},
        {
            "type": "resource_link",
            "name": "a.py#L2-L3",
            "uri": (project / "a.py").as_uri(),
        },
    ]


async def test_session_tells_what_the_agent_offers(stage_of: OpenAgent) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    command = {"name": "init", "description": "Begin."}
    updates: list[dict[str, Any]] = [
        {"sessionUpdate": "available_commands_update", "availableCommands": [command]},
        {"sessionUpdate": "current_mode_update", "currentModeId": "code"},
        {"sessionUpdate": "usage_update", "used": 10, "size": 100},
    ]
    stage = await stage_of(
        session={"modes": modes}, prompts=[[*({"update": one} for one in updates), {"say": "."}]]
    )
    await stage.ask()
    session = stage.runner.agents.find(stage.context, "bot")
    assert session is not None and session.modes is not None and session.usage is not None
    assert [one.name for one in session.commands] == ["init"]
    assert (session.modes.current_mode_id, session.usage.used) == ("code", 10)
    await session.choose("mode", "ask")
    assert session.modes.current_mode_id == "ask"
    assert stage.received("session/set_mode") == [{"sessionId": "s1", "modeId": "ask"}]


async def test_agent_answers_only_who_names_it_unless_it_was_chosen(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[{"say": "Here."}]])
    await stage.play("Anybody?")
    assert stage.prompts() == []
    chosen = await stage.call("context.model", model="bot")
    assert (chosen["model"], chosen["instruction_tokens"]) == ("bot", 0)
    await stage.play("Anybody now?")
    assert len(stage.prompts()) == 1 and stage.prompts()[0].endswith("Anybody now?")


async def test_agent_works_for_owners_only(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[{"say": "Yes."}]])
    bo = await stage.actor("bo")
    assert stage.kernel.members.role_of(bo.principal) is AccessRole.EDITOR
    await stage.play("@bot Go.", bo)
    ((kind, _, said),) = stage.shown()[1:]
    assert kind == "error" and said == (
        "Not answered: this is a message of bo, an editor, and only an owner has agents work here:"
        " ask the owner to ask bot."
    )
    with pytest.raises(AntiphonError, match="You are an editor, and bot is an agent"):
        await stage.kernel.call(bo, "context.model", {"model": "bot"})
    assert stage.pids() == []


async def test_turn_is_tried_again_and_asked_anew(stage_of: OpenAgent) -> None:
    stage = await stage_of(prompts=[[{"refuse": "Busy."}], [{"say": "Better."}]])
    (failed,) = await stage.ask("Try.")
    assert failed[:2] == ("error", "error") and failed[2].startswith("bot refuses: Busy.")
    await stage.call("turn.retry", message=stage.headers()[-1].id)
    await stage.runner.wait_idle()
    assert stage.shown()[-1] == ("text", "done", "Better.")
    assert [one.rpartition("\n")[2] for one in stage.prompts()] == ["Try.", "Try."]
    again = await stage.call("turn.start", message=stage.headers()[-1].id)
    assert (again["models"], again["forked"]) == (["bot"], True)
    await stage.runner.wait_idle()
    assert len(stage.received("session/new")) == 2, "a branch has a session of its own"
