"""Turns whose calls wait for people: they go on with the decision, also after a restart."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers import PermissionPolicy, TextDelta, ToolCallEvent
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import Replying, Stage
from tests.waiting import until

TOUCH = ToolCallEvent("c1", "shell", {"command": "touch ran"})


class House:
    """A project whose kernel is started again and again, with a model that asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.provider = Replying([TOUCH], [TextDelta("Done.")])
        self.has_model = True
        self.stage: Stage

    async def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        tools = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
        kernel = await Kernel.open(self.folder / "data", self.folder, registry=tools, owner="amy")
        models = {"aria": self.provider} if self.has_model else {}
        runner = TurnRunner(kernel, Models(models, permissions={"aria": PermissionPolicy()}))
        self.stage = Stage(kernel, await kernel.context(), runner)

    async def stop(self) -> None:
        await self.stage.runner.close()
        await self.stage.kernel.close()

    async def crash(self) -> None:
        """Go on with the files as they are now; what is in memory is lost."""
        await self.stage.context.wait_persisted()
        image = self.folder.with_name(f"{self.folder.name}-again")
        shutil.copytree(self.folder, image)
        await self.stop()
        self.folder = image
        await self.start()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def call(self) -> BlockHeader:
        (one,) = [one for one in self.stage.headers() if one.kind == BlockKind.TOOL_CALL]
        return one

    def result(self) -> str:
        (one,) = [one for one in self.stage.headers() if one.kind == BlockKind.TOOL_RESULT]
        return self.stage.text(one)

    def has_ran(self) -> bool:
        return (self.folder / "ran").exists()

    def is_asked(self) -> bool:
        headers = self.stage.headers()
        return any(one.permission == "asked" for one in headers)

    async def decide(self, decision: str, **more: str) -> dict[str, Any]:
        params = {"block_id": self.call().id, "decision": decision, **more}
        return await self.stage.call("permission.decide", **params)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "project")
    await house.start()
    yield house
    await house.stop()


async def test_asked_call_is_pending_runs_when_allowed_and_the_turn_goes_on(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    call = house.call()
    assert (call.status, call.runs_for) == ("pending", "amy")
    assert house.stage.text(call) == "touch ran"
    assert not house.has_ran()
    assert not house.stage.runner.busy
    await house.decide("once")
    await house.stage.runner.wait_idle()
    assert house.has_ran()
    assert (house.call().status, house.call().permission) == ("done", "once")
    assert house.stage.shown()[-1] == ("text", "done", "Done.")


async def test_denied_call_does_not_run_and_the_model_goes_on_with_the_reason(
    house: House,
) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    await house.decide("no", reason="Not there.")
    await house.stage.runner.wait_idle()
    assert not house.has_ran()
    assert house.call().status == "error"
    assert house.result() == "Not run: amy said no: Not there."
    assert "amy said no: Not there." in str(house.provider.prompts[-1].conversation)
    assert house.stage.shown()[-1] == ("text", "done", "Done.")


async def test_interrupted_turn_withdraws_its_call(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    assert await house.stage.interrupt() == ["aria"]
    assert (house.call().status, house.call().permission) == ("error", "withdrawn")
    with pytest.raises(AntiphonError) as error:
        await house.decide("once")
    assert error.value.code is ErrorCode.INVALID_TRANSITION
    assert not house.has_ran()


@pytest.mark.parametrize("again", [House.restart, House.crash])
@pytest.mark.parametrize("decision", ["once", "always", "no"])
async def test_undecided_call_survives_a_restart_and_its_turn_goes_on(
    house: House, again: Any, decision: str
) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    for _ in range(2):
        await again(house)
        assert (house.call().status, house.call().permission) == ("pending", "asked")
        (listed,) = (await house.stage.call("permission.list"))["undecided"]
        assert (listed["block_id"], listed["runs_for"]) == (house.call().id, "amy")
    await house.decide(decision)
    await house.stage.runner.wait_idle()
    assert house.has_ran() is (decision != "no")
    assert house.call().status == ("error" if decision == "no" else "done")
    assert house.stage.shown()[-1] == ("text", "done", "Done.")
    assert not (await house.stage.call("permission.list"))["undecided"]


@pytest.mark.parametrize("again", [House.restart, House.crash])
async def test_rule_survives_a_restart(house: House, again: Any) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    await house.decide("always")
    await house.stage.runner.wait_idle()
    await again(house)
    (house.folder / "ran").unlink()
    house.provider.then([TOUCH], [TextDelta("Done.")])
    await house.stage.play("Once more.")
    assert house.has_ran()
    (rule,) = (await house.stage.call("permission.list"))["rules"]
    assert (rule["decided_by"], rule["arguments"]) == ("amy", {"command": "touch ran"})


async def test_resumed_call_is_withdrawn_by_an_interrupt(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    await house.restart()
    await until(lambda: house.stage.runner.works(house.stage.context))
    assert await house.stage.interrupt() == ["aria"]
    assert (house.call().status, house.call().permission) == ("error", "withdrawn")
    assert not (await house.stage.call("permission.list"))["undecided"]


async def test_call_of_a_model_that_is_gone_after_a_restart_is_withdrawn(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    house.has_model = False
    await house.restart()
    await until(lambda: house.call().permission == "withdrawn")
    await until(lambda: house.call().status == "error")
    with pytest.raises(AntiphonError, match="waits for no decision"):
        await house.decide("once")


@pytest.mark.parametrize("loses", ["role", "invitation", "time"])
async def test_call_of_an_asker_who_has_to_go_before_a_restart_is_not_asked_again(
    house: House, loses: str
) -> None:
    kernel = house.stage.kernel
    issued = await kernel.invitations.invite(AccessRole.EDITOR, name="co", expires=None, uses=None)
    await kernel.members.give_role(issued.principal, AccessRole.OWNER)
    number = issued.credential.number
    co = kernel.open_session(issued.principal, "test", credential=number)
    await house.stage.submit("Touch it.", co)
    await until(house.is_asked)
    # As if the kernel had ended between the loss and its consequences.
    match loses:
        case "role":
            await kernel.members.give_role(issued.principal, AccessRole.EDITOR)
        case "invitation":
            await kernel.invitations.revoke([number])
        case _:
            await kernel.members.ban(issued.principal, kernel.clock.now_ms() + 3_600_000)
    await house.crash()
    await until(lambda: house.call().permission == "withdrawn")
    with pytest.raises(AntiphonError, match="waits for no decision"):
        await house.decide("once")
    await house.stage.runner.wait_idle()
    assert not house.has_ran()


async def test_copies_of_an_undecided_call_ask_nobody(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    kernel = house.stage.kernel
    fork = await house.stage.call("context.fork", context="default", label="copy")
    text = (await house.stage.call("context.export", context="default"))["text"]
    imported = await house.stage.call("context.import", text=text, label="import")
    for made in (fork, imported):
        context = await kernel.context(made["label"])
        document = context.document
        (call,) = [
            document.header(one)
            for one in document.block_ids()
            if document.header(one).kind == BlockKind.TOOL_CALL
        ]
        assert call.permission == "withdrawn"
        with pytest.raises(AntiphonError, match="waits for no decision"):
            await house.stage.call("permission.decide", block_id=call.id, decision="once")
    assert house.is_asked()


async def test_undecided_call_of_a_journal_from_elsewhere_asks_nobody(house: House) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    await house.stop()
    for file in (house.folder / "data").glob("auth.db*"):
        file.unlink()
    await house.start()
    assert (house.call().status, house.call().permission) == ("error", "withdrawn")
    with pytest.raises(AntiphonError, match="waits for no decision"):
        await house.decide("once")
    assert not house.has_ran()


async def test_asked_call_that_its_owner_ends_is_not_run_and_the_turn_goes_on(
    house: House,
) -> None:
    await house.stage.submit("Touch it.")
    await until(house.is_asked)
    await house.stage.call("block.status", block_id=house.call().id, status="error")
    await house.stage.runner.wait_idle()
    assert not house.has_ran()
    assert house.call().permission == "withdrawn"
    assert house.stage.shown()[-1] == ("text", "done", "Done.")
    assert not house.stage.unfinished()


async def test_result_that_its_owner_ends_ends_the_command_and_the_turn_goes_on(
    house: House,
) -> None:
    house.provider.then([ToolCallEvent("c1", "shell", {"command": "yes"})], [TextDelta("Done.")])
    stage = house.stage
    await stage.submit("Say it.")
    await until(house.is_asked)
    await house.decide("once")
    await until(lambda: any("y" in one for one in stage.results()))
    (result,) = stage.of_kind(BlockKind.TOOL_RESULT)
    await stage.call("block.status", block_id=result.id, status="done")
    await stage.runner.wait_idle()
    assert stage.shown()[-1] == ("text", "done", "Done.")
    assert not stage.unfinished()
