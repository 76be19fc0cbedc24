"""An edit that the kernel refuses does not take the others along, and can be read afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.rejected_edits import write_report
from antiphon_kernel.limits import Limits
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.errors import AntiphonError
from tests.kernel.served import ServedKernel, served_kernel
from tests.waiting import PATIENCE, until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "refused"


@pytest.fixture(params=[ServerLimits(), ServerLimits(state_part=50)], ids=["whole", "parts"])
async def serving(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServedKernel]:
    """A kernel that sends the state of a document in one frame, or in several."""
    async with served_kernel(tmp_path / "serving", request.param) as kernel:
        yield kernel


async def test_replica_edits_around_rejected_edit_arrive(
    serving: ServedKernel, folder: Path
) -> None:
    served = serving
    first, second = await served.block("one"), await served.block("two", status="done")
    replica = await served.replica("ben", keep=write_report(folder))
    rebuilt: list[bool] = []
    replica.document_replaced.listen(lambda: rebuilt.append(True))
    old = replica.document
    await served.stop()
    await until(lambda: replica.state is ReplicaState.OFFLINE)
    old.splice(first, 0, 0, "😀>")
    old.splice(second, 3, 0, "!")
    old.set_fields(second, status="error")
    old.splice(second, 0, 1, "T")
    old.splice(first, len(old.text(first)), 0, "<")
    await served.start()
    await until(lambda: rebuilt)
    assert replica.document is not old
    await until(lambda: replica.state is ReplicaState.LIVE)
    context = await served.context()
    for document in (context.document, replica.document):
        assert document.text(first) == "😀>one<"
        assert document.text(second) == "Two!"
        assert document.header(second).status == "done"
    assert replica.rejected_edits is not None
    assert replica.rejected_edits.edits == 1
    account = replica.rejected_edits.file.read_text()
    assert "tools" in account and "status" in account and second in account
    assert replica.rejected_edits.file.parent == folder
    assert replica.outbox.unsaved == 0
    replica.document.append(first, " on")
    await replica.saved()
    assert context.document.text(first) == "😀>one< on"


async def test_replica_edit_of_rejected_text_is_kept_in_report(
    served: ServedKernel, folder: Path
) -> None:
    block = await served.block("hello")
    replica = await served.replica("ben", keep=write_report(folder))
    document = replica.document
    await served.stop()
    await until(lambda: replica.state is ReplicaState.OFFLINE)
    amy = served.me.principal.id
    stolen = f"{document.context}.{amy}.{2**32 + 5}"
    header = document.header(block)
    document.create_block(header._replace(id=stolen, status="pending"), "draft ")
    for character in "in another's name":
        document.append(stolen, character)
    document.append(block, " there")
    await served.start()
    await until(lambda: replica.rejected_edits is not None)
    context = await served.context()
    await until(lambda: context.document.text(block) == "hello there")
    assert stolen not in context.document
    assert stolen not in replica.document
    assert replica.rejected_edits is not None
    account = replica.rejected_edits.file.read_text()
    assert "draft in another's name" in account


async def test_replica_saved_raises_reason_of_rejected_edit(
    served: ServedKernel, folder: Path
) -> None:
    block = await served.block("hello")
    replica = await served.replica("ben", keep=write_report(folder))
    replica.document.set_fields(block, status="error")
    with pytest.raises(AntiphonError) as caught:
        await asyncio.wait_for(replica.saved(), PATIENCE)
    assert Path(caught.value.details["file"]).exists()


async def test_replica_keeps_rejected_text_until_it_can_be_written_down(
    served: ServedKernel, folder: Path
) -> None:
    block = await served.block("hello")
    failures = [OSError("no space left"), OSError("no space left")]
    write = write_report(folder)

    def keep(report: str) -> Path:
        if failures:
            raise failures.pop()
        return write(report)

    replica = await served.replica("ben", retry=lambda _: 0.01, keep=keep)
    troubles: list[str | None] = []
    replica.state_changed.listen(lambda: troubles.append(replica.last_error))
    replica.document.set_fields(block, status="error")
    replica.document.append(block, " there")
    await until(lambda: replica.rejected_edits is not None)
    assert any("no space left" in (one or "") for one in troubles)
    await until(lambda: replica.state is ReplicaState.LIVE)
    assert replica.document.text(block) == "hello there"
    assert (await served.context()).document.text(block) == "hello there"


@pytest.mark.sqlite
async def test_replica_of_another_epoch_writes_down_what_never_arrived(
    served: ServedKernel, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    block = await served.block("hello")
    replica = await served.replica(retry=lambda _: 0.01, keep=write_report(folder))
    await served.stop()
    await until(lambda: replica.state is ReplicaState.OFFLINE)
    replica.document.append(block, " offline")
    served.move(tmp_path_factory.mktemp("another"))
    await served.start()
    await until(lambda: replica.state is ReplicaState.REFUSED)
    assert replica.rejection is not None and "epoch" in replica.rejection
    assert replica.rejected_edits is not None
    assert "     offline" in replica.rejected_edits.file.read_text()
    assert len((await served.context()).document) == 0


async def test_replica_further_rejected_edits_are_counted_and_added_to_report(
    served: ServedKernel, folder: Path
) -> None:
    block = await served.block("hello")
    replica = await served.replica("ben", keep=write_report(folder))
    rebuilt: list[bool] = []
    replica.document_replaced.listen(lambda: rebuilt.append(True))
    for words in ("first", "second", "third"):
        rebuilt.clear()
        replica.document.set_fields(block, status="error")
        replica.document.append(block, f" {words}")
        replica.document.set_fields(block, kind="thinking")
        await until(lambda: rebuilt)
        await until(lambda: replica.state is ReplicaState.LIVE)
    assert replica.rejected_edits is not None
    assert replica.rejected_edits.edits == 6
    (file,) = folder.iterdir()
    assert replica.rejected_edits.file == file
    account = file.read_text()
    assert account.count("set status") == account.count("set kind") == 3
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
async def test_replica_edits_in_and_around_rejected_text_arrive_in_their_places(
    tmp_path: Path, folder: Path, order: tuple[int, ...]
) -> None:
    limits = Limits(block_code_points=20)
    async with served_kernel(tmp_path / "serving", kernel_limits=limits) as served:
        block = await served.block("xy")
        replica = await served.replica("ben", keep=write_report(folder))
        await served.stop()
        await until(lambda: replica.state is ReplicaState.OFFLINE)
        document = replica.document
        document.splice(block, 1, 0, "_" * 30)
        for number in order:
            text = document.text(block)
            place = (1, text.index("_"), text.rindex("_") - 4, text.rindex("_") + 1)[number]
            document.splice(block, place, 0, "abcd"[number])
        expected = document.text(block).replace("_", "")
        await served.start()
        await until(lambda: replica.rejected_edits is not None)
        await until(lambda: replica.state is ReplicaState.LIVE)
        assert replica.document.text(block) == expected
        assert (await served.context()).document.text(block) == expected
        assert replica.rejected_edits is not None
        assert replica.rejected_edits.edits == 1
