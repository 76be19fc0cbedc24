"""A replica that gets a frame which it cannot read says so and connects again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.rejected_edits import write_report
from antiphon_kernel.yjs.frames import SyncStep1, SyncStep2, SyncUpdate, decode_frame, encode_frame
from tests.kernel.frame_relay import FrameRelay
from tests.kernel.served import ServedKernel
from tests.waiting import until

DAMAGED = b"\x05\x01"


class DamagingRelay(FrameRelay):
    """A relay whose next frame of some type comes damaged."""

    def __init__(self, served: ServedKernel) -> None:
        super().__init__(served)
        self.kind: type[SyncStep1 | SyncStep2 | SyncUpdate] | bytes | None = None
        """The type of frame that is damaged, or what is sent in place of the next one."""
        self.change = self._damaged

    def _damaged(self, data: bytes) -> bytes:
        kind = self.kind
        if isinstance(kind, bytes):
            self.kind = None
            return kind
        frame = decode_frame(data)
        if kind is None or not isinstance(frame, kind):
            return data
        self.kind = None
        return encode_frame(kind(DAMAGED))


@pytest.fixture
async def relay(served: ServedKernel) -> AsyncIterator[DamagingRelay]:
    relay = DamagingRelay(served)
    await relay.start()
    yield relay
    await relay.close()


FRAMES: tuple[type[SyncUpdate] | bytes, ...] = (
    *(SyncUpdate, b"\x63", b"\x01\x05abc", b"\x00\x00\x02\x01\xff", b"\x66\x01\x02{}\x01[", b""),
)


@pytest.mark.parametrize("recent", [0, 2])
async def test_replica_that_gets_an_unreadable_frame_connects_again(
    served: ServedKernel, relay: DamagingRelay, recent: int
) -> None:
    blocks = [await served.block(f"text {number}") for number in range(8)]
    for number, kind in enumerate(FRAMES, 1):
        before = relay.connections
        replica = await served.replica(locate=relay.locate, recent=recent, retry=lambda _: 0.01)
        relay.kind = kind
        await served.call("block.append", block_id=blocks[-1], text="!")
        await until(lambda: "cannot be read" in (replica.kernel_error or ""), repr(kind))  # noqa: B023
        await until(lambda: relay.connections >= before + 2, repr(kind))  # noqa: B023
        replica.document.splice(blocks[-2], 0, 4, f"mine {kind!r}")
        await replica.saved()
        await until(lambda: replica.document.text(blocks[-1]) == "text 7" + "!" * number)  # noqa: B023
        assert (await served.context()).document.text(blocks[-2]).startswith(f"mine {kind!r}")
        await replica.close()


@pytest.mark.parametrize("kind", [SyncStep1, SyncStep2])
@pytest.mark.parametrize("recent", [0, 2])
async def test_replica_that_gets_an_unreadable_state_connects_again(
    served: ServedKernel, relay: DamagingRelay, kind: type[SyncStep1 | SyncStep2], recent: int
) -> None:
    blocks = [await served.block(f"text {number}") for number in range(8)]
    relay.kind = kind
    errors: list[str | None] = []
    replica = served.start_replica(locate=relay.locate, recent=recent, retry=lambda _: 0.01)
    replica.state_changed.listen(lambda: errors.append(replica.last_error))
    await until(lambda: replica.state is ReplicaState.LIVE and relay.connections == 2)
    assert any(error and "cannot be read" in error for error in errors)
    replica.document.splice(blocks[-1], 0, 4, "mine")
    await replica.saved()
    assert (await served.context()).document.text(blocks[-1]) == "mine 7"


@pytest.mark.parametrize("kind", [SyncStep1, SyncStep2, b"\x63"])
async def test_edits_after_a_refusal_survive_an_unreadable_frame(
    served: ServedKernel,
    relay: DamagingRelay,
    kind: type[SyncStep1 | SyncStep2] | bytes,
    tmp_path: Path,
) -> None:
    first, second = await served.block("one"), await served.block("two", status="done")
    replica = await served.replica(
        "ben", locate=relay.locate, keep=write_report(tmp_path / "refused"), retry=lambda _: 0.01
    )

    def damage_the_replay() -> None:
        if relay.connections == 1 and replica.state is ReplicaState.OFFLINE:
            relay.kind = kind

    replica.state_changed.listen(damage_the_replay)
    old = replica.document
    old.set_fields(second, status="error")
    old.splice(first, 0, 0, ">")
    await until(lambda: replica.document is not old and replica.state is ReplicaState.LIVE)
    assert relay.kind is None
    assert (await served.context()).document.text(first) == ">one"
    assert replica.document.header(second).status == "done"
