"""Connected clients of a kernel whose journal has been deleted are told, and can still read."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.state import ReplicaState
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.yjs.close_codes import CloseCode
from tests.kernel.served import ServedKernel
from tests.waiting import until


def refused(replica: Replica) -> bool:
    return replica.state is ReplicaState.REFUSED


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.db"


async def test_connections_after_loss_of_journal_are_closed_with_reason(
    served: ServedKernel, journal: Path
) -> None:
    block = await served.block("hello")
    typist, reader = await served.replica("ben"), await served.replica("eve")
    journal.unlink()
    typist.document.append(block, " world")
    for replica in (typist, reader):
        await until(partial(refused, replica))
        assert replica.rejection_code == CloseCode.STORAGE_LOST
        assert replica.rejection == str(served.kernel.journal.lost)
    assert typist.unsaved == 1


async def test_connection_after_loss_of_journal_is_closed_with_reason(
    served: ServedKernel, journal: Path
) -> None:
    journal.unlink()
    with pytest.raises(AntiphonError):
        await served.block("hello")
    client = await served.raw()
    assert (await client.closed())[0] == CloseCode.STORAGE_LOST


async def test_calls_go_on_reading_and_subscriptions_end(
    served: ServedKernel, journal: Path
) -> None:
    block = await served.block("hello")
    calls = ToolClient(served.locate)
    subscription = await served.kernel.subscriptions.open(served.me, [await served.context()], None)
    journal.unlink()
    with pytest.raises(AntiphonError, match="Nothing more is saved"):
        await calls.call("block.append", {"block_id": block, "text": " world"})
    assert (await calls.call("block.read", {"block_id": block}))["content"] == "hello"
    exported = await calls.call("context.export", {})
    assert "hello" in str(exported)
    with pytest.raises(AntiphonError, match="Nothing more is saved"):
        async for _ in subscription:
            pass
    await calls.close()
