"""Presence: identities that cannot be forged, nobody forgotten, nobody left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.yjs.frames import (
    AwarenessEntry,
    AwarenessUpdate,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_awareness,
    encode_awareness,
)
from tests.kernel.served import RawClient, ServedKernel, served_kernel
from tests.waiting import until


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """Doors that give a sign of life every few milliseconds."""
    async with served_kernel(tmp_path, ServerLimits(heartbeat=0.02)) as served:
        yield served


def says(client: int, clock: int, state: Mapping[str, Any] | None) -> AwarenessUpdate:
    return AwarenessUpdate(encode_awareness([AwarenessEntry(client, clock, state)]))


async def heard(client: RawClient, about: int) -> AwarenessEntry:
    """The next thing that `client` hears about an awareness id."""
    while True:
        update = (await client.next(AwarenessUpdate)).update
        for entry in decode_awareness(update):
            if entry.client == about:
                return entry


async def test_kernel_says_who_somebody_is(served: ServedKernel) -> None:
    liar, other = await served.joined(query="as=ben"), await served.joined()
    lie = {
        "principal": "x",
        "name": "amy",
        "kind": "model",
        "colour": 99,
        "session": "y",
        "user": {"name": "amy", "color": "#f00"},
        "cursor": 3,
        "theirs": {"anchor": [1]},
    }
    await liar.send(says(42, 1, lie))
    entry = await heard(other, 42)
    ben = await served.kernel.principal("ben")
    assert entry.state is not None
    state = dict(entry.state)
    assert (state["principal"], state["name"], state["kind"]) == (ben.id, "ben", "human")
    assert state["session"] != "y" and state["colour"] in range(12)
    assert state["user"] == {"name": "ben", "color": "#f00"}
    assert (state["cursor"], state["theirs"]) == (3, {"anchor": [1]})


async def test_places_in_presence_are_passed_on_as_far_as_they_can_be_read(
    served: ServedKernel,
) -> None:
    pointing, other = await served.joined(query="as=ben"), await served.joined()
    place = {"block": "b", "start": 1, "end": 4}
    state = {"view": {**place, "more": "x" * 100}, "pointer": place, "gathers": True}
    await pointing.send(says(7, 1, state))
    passed = (await heard(other, 7)).state
    assert passed is not None
    assert (passed["view"], passed["pointer"], passed["gathers"]) == (place, place, True)
    wrong = [3, {"block": "b" * 300, "start": 0, "end": 1}, {"block": "b", "start": 4, "end": 1}]
    for number, one in enumerate(wrong, 2):
        await pointing.send(says(7, number, {"view": one, "pointer": one, "gathers": "yes"}))
        passed = (await heard(other, 7)).state
        assert passed is not None and not {"view", "pointer", "gathers"} & passed.keys()


async def test_client_hears_its_own_state_under_its_own_clock(served: ServedKernel) -> None:
    client = await served.joined()
    await client.send(says(42, 7, {"cursor": 3}))
    entry = await heard(client, 42)
    assert entry.clock == 7
    assert entry.state is not None and entry.state["name"] == "amy"


async def test_late_joiner_hears_of_everyone(served: ServedKernel) -> None:
    context = await served.context()
    first = await served.joined(query="as=ben")
    await first.send(says(42, 1, {"cursor": 3}))
    await heard(first, 42)
    model = PresenceState("p", "opus", PrincipalKind.MODEL, 3, "s", activity=Activity.STREAMING)
    context.presence.put(77, model)
    late = await served.joined()
    entries = {
        entry.client: entry for entry in decode_awareness((await late.next(AwarenessUpdate)).update)
    }
    assert entries.keys() == {42, 77}
    assert PresenceState.parse(entries[77].state or {}) == model
    await late.send(QueryAwareness())
    await late.next(
        AwarenessUpdate,
        lambda frame: {entry.client for entry in decode_awareness(frame.update)} == {42, 77},
    )


@pytest.mark.parametrize("politely", [True, False])
async def test_presence_of_leaving_client_is_removed(served: ServedKernel, politely: bool) -> None:
    leaver, other = await served.joined(query="as=ben"), await served.joined()
    await leaver.send(says(42, 1, {"cursor": 3}))
    before = await heard(other, 42)
    if politely:
        await leaver.socket.close()
    else:
        leaver.socket.transport.abort()
    after = await heard(other, 42)
    assert after.state is None
    assert after.clock > before.clock
    assert (await served.context()).presence.states() == {}


async def test_presence_of_client_with_old_clock_is_shown_again(served: ServedKernel) -> None:
    other = await served.joined()
    seen = pycrdt.Awareness(pycrdt.Doc())
    for _ in range(3):
        client = await served.joined(query="as=ben")
        await client.send(says(42, 1, {"cursor": 3}))
        entry = await heard(other, 42)
        seen.apply_awareness_update(encode_awareness([entry]), "test")
        assert 42 in seen.states
        client.socket.transport.abort()
        entry = await heard(other, 42)
        seen.apply_awareness_update(encode_awareness([entry]), "test")
        assert 42 not in seen.states


async def test_client_speaks_for_nobody_else(served: ServedKernel) -> None:
    ben, eve, amy = [await served.raw(query=f"as={name}") for name in ("ben", "eve", "amy")]
    for client in (ben, eve, amy):
        await client.join()
    await ben.send(says(42, 1, {"cursor": 3}))
    assert (await heard(amy, 42)).state is not None
    await eve.send(says(42, 9, None), says(42, 9, {"cursor": 1}), says(43, 1, {"cursor": 5}))
    entry = await heard(amy, 43)
    assert entry.state is not None and entry.state["name"] == "eve"
    await eve.send(says(44, 1, {}), says(43, 2, {"cursor": 6}))
    entry = await heard(amy, 43)
    assert entry.state is not None and entry.state["cursor"] == 6
    presence = (await served.context()).presence.states()
    assert presence[42].username == "ben" and presence[42].cursor == 3
    assert 44 not in presence


async def test_same_person_takes_their_id_over_from_a_dead_connection(served: ServedKernel) -> None:
    old, new, other = [await served.raw(query=f"as={name}") for name in ("ben", "ben", "amy")]
    for client in (old, new, other):
        await client.join()
    await old.send(says(42, 1, {"cursor": 1}))
    await heard(other, 42)
    await new.send(says(42, 2, {"cursor": 2}))
    entry = await heard(other, 42)
    assert entry.state is not None and entry.state["cursor"] == 2
    old.socket.transport.abort()
    await new.send(says(42, 3, {"cursor": 3}))
    entry = await heard(other, 42)
    assert entry.state is not None and entry.state["cursor"] == 3


async def test_presence_does_not_overtake_the_text_before_it(served: ServedKernel) -> None:
    block = await served.block()
    writer, reader = await served.writer("as=ben"), await served.writer()
    seen = reader.document
    for length in range(1, 60):
        await writer.append(block, "x")
        await writer.client.send(says(42, length, {"block": block, "cursor": length}))
    cursor = 0
    while cursor < 59:
        frame = await reader.client.any()
        if isinstance(frame, SyncUpdate | SyncStep2):
            seen.apply_update(frame.update)
        elif isinstance(frame, AwarenessUpdate):
            for entry in decode_awareness(frame.update):
                if entry.client == 42 and entry.state is not None:
                    cursor = int(entry.state["cursor"])
                    assert cursor <= len(seen.text(block))


async def test_silent_room_gives_signs_of_life_that_renew_models(quick: ServedKernel) -> None:
    context = await quick.context()
    client = await quick.joined()
    await client.next(AwarenessUpdate)
    assert decode_awareness((await client.next(AwarenessUpdate)).update) == ()
    context.presence.put(77, PresenceState("p", "opus", PrincipalKind.MODEL, 3, "s"))
    clocks = [(await heard(client, 77)).clock for _ in range(3)]
    assert clocks == sorted(set(clocks))


async def test_oversized_awareness_message_is_malformed(served: ServedKernel) -> None:
    client = await served.raw()
    await client.send(SyncStep1(b"\x00"), says(1, 1, {"x": "y" * 100_000}))
    assert (await client.closed())[0] == 4400
    await until(lambda: len(served.doors.replicas.rooms) == 0)
