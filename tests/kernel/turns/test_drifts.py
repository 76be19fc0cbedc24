"""Drifts and models: who is woken by what arrives, and with whose rights they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.providers import End, TextDelta, TurnEvent
from antiphon_kernel.types.enums import BlockKind, Role
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import (
    DONE,
    Gate,
    OpenStage,
    Stage,
    call,
    recording,
    scripted,
)

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
