"""Contexts as sessions of an editor that speaks ACP: what it is told, and what it may do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, helpers, schema

from antiphon_kernel.providers.events import End, ProviderError, ThinkingDelta, ToolCallEvent
from antiphon_kernel.types.enums import PrincipalKind
from tests.app.acp_agent.connected import Editor, connected
from tests.app.opened import World, Writer, world


class Opened:
    """A session in an editor."""

    cleo: Writer
    """The other model."""

    def __init__(self, here: World, editor: Editor, session: str) -> None:
        self.here, self.editor, self.session = here, editor, session

    def prompt(self, *parts: Any) -> asyncio.Task[schema.PromptResponse]:
        content = [helpers.text_block(one) if isinstance(one, str) else one for one in parts]
        asked = self.editor.agent.prompt(session_id=self.session, prompt=content)
        return asyncio.ensure_future(asked)

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.here.call(tool, **params)

    async def say(self, text: str, **more: Any) -> str:
        """Write a message of another person."""
        principal = await self.here.kernel.principal("bo", PrincipalKind.HUMAN)
        actor = self.here.kernel.open_session(principal, "test")
        new = {"context": self.session, "role": "user", "kind": "text", "content": text, **more}
        return str((await self.here.kernel.call(actor, "block.create", new))["block_id"])


@pytest.fixture
async def zed(tmp_path: Path) -> AsyncIterator[Opened]:
    (tmp_path / ".git").mkdir()
    async with AsyncExitStack() as stack:
        cleo = Writer()
        here = await stack.enter_async_context(world(tmp_path, asks=True, others={"cleo": cleo}))
        editor = await stack.enter_async_context(connected(here))
        made = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        one = Opened(here, editor, made.session_id)
        one.cleo = cleo
        yield one


async def test_answer_is_told_as_it_is_written(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    answered = zed.prompt("Hello?")
    aria.say(ThinkingDelta("Hm."))
    await editor.sees("Hm.", "agent_thought_chunk")
    aria.write("It is ")
    await editor.sees("It is ")
    aria.write("done.")
    await editor.sees("It is done.")
    assert not answered.done()
    aria.end()
    assert (await answered).stop_reason == "end_turn"
    assert aria.prompts == ["Hello?"]
    assert editor.said("user_message_chunk") == ""
    listed = (await editor.agent.list_sessions()).sessions
    assert {one.title for one in listed} == {"default", "acp-1"}


async def test_call_is_asked_about_told_and_decided(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    for number, (answer, said) in enumerate((("no", "said no"), ("once", "42"))):
        editor.answer = asyncio.get_running_loop().create_future()
        answered = zed.prompt("Run it.")
        aria.run("echo $((6 * 7))")
        await editor.asks(number + 1)
        shown, offered = editor.asked[-1]
        assert offered == ["once", "always", "no"]
        assert shown.kind == "execute" and "echo $((6 * 7))" in str(shown.title)
        assert editor.calls()[shown.tool_call_id]["status"] == "pending"
        editor.answer.set_result(answer)
        aria.end()
        assert (await answered).stop_reason == "end_turn"
        call = editor.calls()[shown.tool_call_id]
        assert call["status"] == ("failed" if answer == "no" else "completed")
        assert said in call["content"][0].content.text
    answered = zed.prompt("Run it once more.")
    aria.run("echo three")
    await editor.asks(3)  # is answered at once, as before
    aria.end()
    assert (await answered).stop_reason == "end_turn"


async def test_cancel_stops_this_turn_only_and_takes_questions_back(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    other = await zed.say("@cleo Write.", status="done")
    answered = zed.prompt("Run it.")
    aria.run("true")
    await editor.asks(1)
    await editor.agent.cancel(session_id=zed.session)
    assert (await answered).stop_reason == "cancelled"
    works = (await zed.call("turn.queue", context=zed.session))["works"]
    assert [one["message_id"] for one in works] == [other]
    call = editor.calls()[editor.asked[0][0].tool_call_id]
    assert call["status"] == "failed"


async def test_change_of_a_file_is_a_difference(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    path = zed.here.folder / "notes.md"
    path.write_text("one\ntwo\n")
    editor.answer.set_result("once")
    answered = zed.prompt("Change it.")
    given = {"path": "notes.md"}
    aria.say(ToolCallEvent("read", "file_read", given))
    aria.say(End("tool_use"))
    change = {"old_text": "two\n", "new_text": "2\nthree\n"}
    aria.say(ToolCallEvent("edit", "file_edit", given | change))
    aria.say(End("tool_use"))
    aria.end()
    assert (await answered).stop_reason == "end_turn"
    read, edit = editor.calls().values()
    assert read["kind"] == "read" and read["locations"][0].path == str(path)
    assert edit["kind"] == "edit" and edit["status"] == "completed", edit["content"]
    difference = edit["content"][0]
    assert difference.path == str(path)
    assert (difference.old_text, difference.new_text) == ("one\ntwo\n", "one\n2\nthree\n")


async def test_people_are_told_too_with_their_edits_but_no_drafts(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    answered = zed.prompt("Write.")
    aria.write("First line.\nSecond")
    await editor.sees("Second")
    listed = await zed.call("block.list", context=zed.session)
    text = listed["blocks"][-1]["block_id"]
    await zed.call("block.splice", block_id=text, offset=0, delete_count=5, insert="The best")
    draft = await zed.say("A secret")
    hidden = await zed.say("Hidden", status="done")
    aria.write(" line.")
    aria.end()
    assert (await answered).stop_reason == "end_turn"
    assert editor.said() == "First line.\nSecond line."
    (edit,) = editor.calls().values()
    assert edit["kind"] == "edit" and "amy edited" in edit["title"]
    difference = edit["content"][0]
    assert difference.old_text.startswith("First line.")
    assert difference.new_text.startswith("The best line.")
    aria.write("Fine.")
    aria.end()
    await editor.sees("bo: Hidden", "user_message_chunk")
    await editor.sees("Fine.")
    meta = [one.field_meta for one in editor.updates if one.session_update == "user_message_chunk"]
    assert meta[0]["antiphon"]["author"] == "bo"
    await zed.call("block.exclude", block_id=hidden, excluded=True)
    before = editor.updates
    editor.updates = []
    await editor.agent.load_session(session_id=zed.session, cwd=str(zed.here.folder))
    assert editor.said("user_message_chunk") == "Write."
    assert editor.said() == "The best line.\nSecond line.Fine."
    assert "secret" not in str(before) and draft not in str(before)


PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


async def test_prompt_brings_files_and_images(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    (zed.here.folder / "a b.py").write_text("one = 1\ntwo = 2\n")
    uri = (zed.here.folder / "a b.py").as_uri()
    answered = zed.prompt(
        "Look at ",
        helpers.resource_link_block("a b.py", f"{uri}#L2:2"),
        " and ",
        helpers.resource_block(helpers.embedded_text_resource("file:///x/n.md", "Noted.")),
        helpers.image_block(PIXEL, "image/png"),
        helpers.resource_link_block("else", "https://example.com/else"),
    )
    aria.write("Seen.")
    aria.end()
    await answered
    blocks = (await zed.call("block.list", context=zed.session))["blocks"][:-1]
    assert [one["kind"] for one in blocks] == ["text", "file", "file", "file"]
    sent, note, image, reference = blocks
    text = (await zed.call("block.read", block_id=sent["block_id"]))["content"]
    assert text == "Look at `a b.py#L2-L2` and `n.md`[else](https://example.com/else)"
    assert (await zed.call("block.read", block_id=note["block_id"]))["content"] == "Noted."
    assert image["media_type"] == "image/png"
    assert image["blob_bytes"] == len(base64.b64decode(PIXEL))
    assert reference["metadata"]["reference"]["start"] == 1
    editor.updates = []
    await editor.agent.load_session(session_id=zed.session, cwd=str(zed.here.folder))
    assert editor.said("user_message_chunk") == f"{text}{'<resource_link>' * 3}"


async def test_failure_and_limits_are_stop_reasons_or_errors(zed: Opened) -> None:
    aria = zed.here.aria
    for event, reason in (
        (End("max_tokens"), "max_tokens"),
        (End("refusal"), "refusal"),
        (End("end_turn"), "end_turn"),
    ):
        answered = zed.prompt("Write.")
        aria.write("Well.")
        aria.say(event)
        assert (await answered).stop_reason == reason
    answered = zed.prompt("Write.")
    aria.say(ProviderError("The model is on fire."))
    with pytest.raises(RequestError, match="on fire"):
        await answered
    for wrong in (
        zed.editor.agent.load_session(session_id="nothing", cwd=str(zed.here.folder)),
        zed.editor.agent.prompt(session_id="nothing", prompt=[helpers.text_block("?")]),
        zed.editor.agent.set_config_option(
            config_id="model", session_id=zed.session, value="nobody"
        ),
    ):
        with pytest.raises(RequestError):
            await wrong


async def test_model_that_is_chosen_answers_and_another_one_is_named(zed: Opened) -> None:
    editor, cleo = zed.editor, zed.cleo
    for prompt, said in (("@cleo Hello.", "**cleo:** It is I."), ("Hello.", "It is I.")):
        answered = zed.prompt(prompt)
        cleo.write("It is I.")
        cleo.end()
        assert (await answered).stop_reason == "end_turn"
        assert editor.said() == said
        editor.updates = []
        chosen = await editor.agent.set_config_option(
            config_id="model", session_id=zed.session, value="cleo"
        )
        (option,) = chosen.config_options
        assert (option.id, option.current_value) == ("model", "cleo")
        assert [one.value for one in option.options] == ["aria", "cleo"]


async def test_kernel_that_goes_away_is_said_and_found_again(zed: Opened) -> None:
    aria, editor = zed.here.aria, zed.editor
    answered = zed.prompt("Write.")
    aria.write("Before")
    await editor.sees("Before")
    await zed.here.close_doors()
    with pytest.raises(RequestError, match="kernel"):
        await answered
    with pytest.raises(RequestError, match="kernel"):
        await zed.prompt("Again?")
    await zed.here.open_doors()
    aria.write(" and after.")
    aria.end()
    answered = zed.prompt("Again?")
    aria.write("Yes.")
    aria.end()
    assert (await answered).stop_reason == "end_turn"
    assert editor.said() == "Before and after.Yes."
    await zed.here.close_doors()
    await editor.sees("looks for the kernel again")


async def test_without_a_model_prompt_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    async with world(tmp_path, models=False) as here, connected(here) as editor:
        made = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        with pytest.raises(RequestError, match="No model"):
            await Opened(here, editor, made.session_id).prompt("Hello?")
