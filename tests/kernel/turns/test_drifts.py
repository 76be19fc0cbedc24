"""Drifts and models: who is woken by what arrives, and with whose rights they answer."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.maintenance.audit_log import AuditKind, audit_log
from antiphon_kernel.messages import ModelWindow, TextBlock, estimate_text
from antiphon_kernel.providers import End, ErrorKind, ProviderError, TextDelta, TokenUsage
from antiphon_kernel.providers.events import ThinkingDelta, TurnEvent
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import moved_block
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import (
    DONE,
    Gate,
    OpenStage,
    Reply,
    Replying,
    Stage,
    call,
    open_kernel,
    recording,
    replying,
    scripted,
)
from tests.waiting import until

PLACES = ("north", "east", "south")


def prompts(context: Context) -> list[str]:
    """Return the blocks that models have answered, by kind, in order."""
    document = context.document
    found = (
        document.header(block).parent
        for block in document.block_ids()
        if document.header(block).role == Role.MODEL
        and document.header(block).metadata.get("drift") is None
    )
    return [str(document.header(block).kind) for block in dict.fromkeys(found) if block is not None]


def telling(place: str, **more: Any) -> Sequence[Sequence[TurnEvent]]:
    """Return the rounds of a model that tells all other places what it has to say."""
    others = (one for one in PLACES if one != place)
    calls = [call("drift_push", f"c{one}", to=one, **more) for one in others]
    return (TextDelta(f"News from the {place}."), *calls, End("tool_use")), DONE


async def open_places(
    open_stage: OpenStage, *rounds: Sequence[TurnEvent], **more: Any
) -> tuple[Stage, dict[str, Context]]:
    """Open three contexts, each with a model of its own that tells the other two.

    Args:
        rounds: of the models in the east and the south, if they do something else.
    """
    first, *others = (recording(f"m-{place}", *telling(place, **more)) for place in PLACES)
    if rounds:
        others = [recording(one.model, *rounds) for one in others]
    playing = (first, *others)
    stage = await open_stage(scripted(Gate(), *playing))
    places: dict[str, Context] = {}
    for place in PLACES:
        places[place] = await stage.kernel.create_context(place)
        await stage.call("context.model", context=place, model=f"m-{place}")
    return stage, places


async def say(stage: Stage, place: str, by: Actor | None = None) -> None:
    said = {"kind": "text", "role": "user", "content": "Go", "status": "done", "context": place}
    await stage.kernel.call(by or stage.owner, "block.create", said)
    await stage.runner.wait_idle()


async def test_three_models_that_drift_on_each_message_come_to_rest(open_stage: OpenStage) -> None:
    stage, places = await open_places(open_stage, wake=True)
    for turns in (1, 2):
        await say(stage, "north")
        answered = {place: prompts(context) for place, context in places.items()}
        assert answered["north"].count("text") == turns
        assert "drift" not in answered["north"]
        # A person has written in the north again, so what comes from there wakes again.
        assert all(turns <= answered[place].count("drift") <= 2 * turns for place in PLACES[1:])
    north = prompts(places["north"])
    await say(stage, "east")
    # East and south have told each other since anybody wrote; the north has a new message in it.
    assert len(prompts(places["north"])) > len(north)


async def test_woken_model_has_the_rights_of_whoever_asked_the_first(open_stage: OpenStage) -> None:
    rounds = (call("shell", command="true"), End("tool_use")), DONE
    stage, places = await open_places(open_stage, *rounds, wake=True)
    bo = await stage.actor("bo")
    await stage.kernel.members.give_role(bo.principal, AccessRole.EDITOR)
    await say(stage, "north", await stage.actor("bo"))
    document = places["east"].document
    results = [one for one in document.block_ids() if document.header(one).role == Role.TOOL]
    (said,) = map(document.text, results)
    assert said.startswith("Not run: this turn answers a message of bo, an editor")


async def test_models_wake_nobody_if_they_do_not_ask_for_it(open_stage: OpenStage) -> None:
    stage, places = await open_places(open_stage)
    await say(stage, "north")
    assert prompts(places["east"]) == prompts(places["south"]) == []
    document = places["east"].document
    header, copy = map(document.header, document.block_ids())
    assert header.metadata["drift"]["wakes"] is False
    assert (header.kind, document.text(copy.id)) == (BlockKind.DRIFT, "News from the north.")


async def test_calls_and_errors_that_have_drifted_are_nobodys_here(
    open_stage: OpenStage, tmp_path: Path
) -> None:
    called = (call("shell", command="true"), End("tool_use"))
    stage, _ = await replying(open_stage, called, (ProviderError("No."),))
    await stage.play("Look")
    blocks = [one.id for one in stage.headers() if one.role == Role.MODEL]
    there = await stage.kernel.create_context("there")
    await stage.call("drift.push", to="there", blocks=blocks, wake=False)
    copies = list(map(there.document.header, there.document.block_ids()))
    assert [str(one.kind) for one in copies] == ["drift", "tool_call", "tool_result", "error"]
    with pytest.raises(AntiphonError, match="written by no model"):
        await stage.call("turn.retry", message=copies[-1].id)
    await there.wait_persisted()
    ran = [one for one in await audit_log(tmp_path / "0" / "data") if one.kind is AuditKind.RAN]
    assert [one.context for one in ran] == ["default"]


SUMMARY = (
    TextDelta("A file is "),
    TextDelta("missing. [1, 2]\n\nIt is new. [2, 7]"),
    TokenUsage(input_tokens=9, output_tokens=2),
)


async def distilled(
    open_stage: OpenStage, *replies: Reply, **params: Any
) -> tuple[Stage, Replying, dict[str, Any]]:
    """Sum up a question and its answer in another context."""
    answer = ThinkingDelta("Hm"), TextDelta("No file."), End("end_turn")
    stage, provider = await replying(open_stage, answer)
    await stage.play("Why does it fail?")
    provider.then(*replies)
    there = await stage.kernel.create_context("there")
    params = {"source": "default", "context": "there", "wake": False, **params}
    result = await stage.call("drift.distill", **params)
    stage.context = there
    return stage, provider, result


async def test_distill_streams_what_a_model_writes_with_links(open_stage: OpenStage) -> None:
    stage, provider, result = await distilled(open_stage, (*SUMMARY, End("end_turn")), model="aria")
    (header,) = stage.headers()
    assert (header.kind, header.drift_kind, header.status) == (BlockKind.DRIFT, "distill", "done")
    origin = drift_origin(header.metadata)
    assert origin is not None
    assert (origin.label, origin.by, len(origin.blocks)) == ("default", "amy", 2)
    assert stage.text(header) == (
        "A file is missing. [default.amy.1, default.aria.2]\n\nIt is new. [default.aria.2, 7]"
    )
    assert (result["kind"], result["block_id"]) == ("distill", header.id)
    (message,) = provider.prompts[-1].conversation.messages
    said = "[1] amy say:\nWhy does it fail?\n\n[2] aria say:\nNo file."
    assert message.content == (TextBlock(said),)
    history = await stage.call("block.blame", block_id=header.id)
    assert "aria" in repr(history)
    used = {one.context: one.used.output_tokens for one in await stage.kernel.usage.all()}
    assert used[stage.context.id] == 2
    await stage.call("block.undo", context="there")
    assert stage.headers()[0].excluded
    await stage.call("block.redo", context="there")
    assert not stage.headers()[0].excluded


async def test_distill_without_a_model_quotes(open_stage: OpenStage) -> None:
    stage, _, result = await distilled(open_stage, DONE, wake=True)
    await stage.runner.wait_idle()
    header, answer = stage.headers()
    assert stage.text(header) == (
        "- amy: Why does it fail?\n- aria: No file.\n[default.amy.1, default.aria.2]"
    )
    assert (answer.parent, stage.text(answer)) == (header.id, "Done.")
    assert "outcome" not in result


async def test_distill_that_fails_says_so_in_its_block(open_stage: OpenStage) -> None:
    replies: tuple[tuple[Reply, str], ...] = (
        ((TextDelta("A file"), ProviderError("Gone.")), "A file\n\n{}Gone."),
        ((End("end_turn"),), "{}the model has answered nothing."),
    )
    failed = (ProviderError("No.", ErrorKind.OTHER),)
    stage, provider, result = await distilled(open_stage, failed, model="aria", wake=True)
    for reply, said in (((), "{}No."), *replies):
        if reply:
            provider.then(reply)
            params = {"source": "default", "context": "there", "wake": True, "model": "aria"}
            result = await stage.call("drift.distill", **params)
        header = stage.headers()[-1]
        assert header.status == "error"
        assert stage.text(header) == said.format("The summary was not written to its end: ")
        assert result["outcome"] in stage.text(header)


async def test_distill_of_a_long_context_fits_the_window(open_stage: OpenStage) -> None:
    window = ModelWindow(4_000, 1_000, total=4_000)
    stage, provider = await replying(open_stage, DONE, window=window)
    said = [{"role": "user", "content": f"Line {n}: " + "word " * n * 20} for n in range(60)]
    await stage.call("message.append", context="default", messages=said)
    await stage.call("drift.distill", source="default", model="aria", wake=False)
    prompt = provider.prompts[-1]
    (given,) = prompt.conversation.messages[0].content
    assert isinstance(given, TextBlock)
    assert all(f"Line {n}:" in given.text for n in range(60))
    size = estimate_text(prompt.system) + estimate_text(given.text)
    assert 2_000 < size < 3_000
    assert size + prompt.max_tokens <= 4_000


async def test_merge_brings_a_summary_of_what_is_new_and_changed(open_stage: OpenStage) -> None:
    stage, provider = await replying(open_stage, DONE)
    prompt = await stage.play("Hello")
    await stage.call("context.fork", context="default", label="tidy")
    there = moved_block(prompt, (await stage.kernel.context("tidy")).id)
    await stage.call("block.splice", block_id=there, offset=0, insert="So: ")
    said = {"kind": "text", "role": "user", "content": "New.", "status": "done"}
    await stage.kernel.call(stage.owner, "block.create", {"context": "tidy", **said})
    await stage.runner.wait_idle()
    tidy = stage.kernel.contexts[stage.kernel.contexts.find("tidy")].id
    for reply, concludes in (ProviderError("No."), False), (TextDelta("It greets. [1]"), True):
        provider.then((reply, End("end_turn")))
        await stage.call("drift.merge", source="tidy", summary=True, model="aria", conclude=True)
        assert (stage.kernel.contexts[tidy].archived is not None) is concludes
    assert stage.shown()[-1] == ("drift", "done", "It greets. [tidy.amy.1]")
    assert [text for _, _, text in stage.shown()][:2] == ["Hello", "Done."]
    (message,) = provider.prompts[-1].conversation.messages
    given = "[1] amy say:\nSo: Hello\n\n[2] amy say:\nNew.\n\n[3] aria say:\nDone."
    assert message.content == (TextBlock(given),)


async def test_distill_is_interrupted_like_a_turn(open_stage: OpenStage) -> None:
    stage, provider = await replying(open_stage, DONE)
    await stage.play("Hello")
    never = asyncio.Event()
    provider.then((TextDelta("A file"), never.wait))
    task = asyncio.ensure_future(stage.call("drift.distill", source="default", model="aria"))
    await until(lambda: stage.shown()[-1] == ("drift", "running", "A file"))
    await stage.call("block.splice", block_id=stage.headers()[-1].id, offset=0, insert="So: ")
    assert await stage.interrupt() == ["aria"]
    result = await task
    assert stage.shown()[-1] == ("drift", "error", "So: A file")
    assert result["outcome"] == "It was stopped while it was written."


async def test_distill_that_a_kill_ends_is_interrupted(
    open_stage: OpenStage, tmp_path: Path
) -> None:
    stage, provider = await replying(open_stage, DONE)
    await stage.play("Hello")
    provider.then((TextDelta("A file"), asyncio.Event().wait))
    task = asyncio.ensure_future(stage.call("drift.distill", source="default", model="aria"))
    await until(lambda: stage.shown()[-1] == ("drift", "running", "A file"))
    await stage.context.wait_persisted()
    shutil.copytree(tmp_path / "0" / "data", tmp_path / "1" / "data")
    again = await open_kernel(tmp_path / "1")
    document = (await again.context()).document
    header = document.header(document.block_ids()[-1])
    await again.close()
    assert (header.kind, header.status, header.stop_reason) == ("drift", "error", "interrupted")
    assert document.text(header.id) == "A file"
    await stage.interrupt()
    await task
