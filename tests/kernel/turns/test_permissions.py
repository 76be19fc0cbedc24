"""Permission for calls of models: who may decide, what counts, what is kept, also by a restart."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon_kernel.maintenance.audit_log import audit_log
from antiphon_kernel.providers import PermissionPolicy, TextDelta
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.turns.models import Models
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.yjs.close_codes import CloseCode
from tests.kernel.turns.stage import (
    MODEL,
    AskedCall,
    Asking,
    OpenStage,
    Replying,
    Stage,
    open_asking,
    open_kernel,
    remote,
    write_raw,
)
from tests.policies import policy_of
from tests.waiting import until

COMMAND: Final[dict[str, Any]] = {"command": "touch ran"}
FORK: dict[str, Any] = {"context": "default"}


@pytest.fixture
async def asking(open_stage: OpenStage) -> Asking:
    return await open_asking(open_stage)


async def refused(code: ErrorCode, work: Awaitable[Any]) -> AntiphonError:
    with pytest.raises(AntiphonError) as error:
        await work
    assert error.value.code is code
    return error.value


# The policy


WITHOUT_POLICY: Final[list[tuple[str, dict[str, Any], bool]]] = [
    ("shell", COMMAND, True),
    ("block_read", {"block_id": "default.amy.1"}, False),
    ("block_list", {"context": "default"}, False),
    ("block_edit", {"block_id": "default.amy.1", "operations": []}, False),
    ("block_create", {"parent_id": "default.amy.1", "kind": "text"}, False),
    ("block_read", {"block_id": "other.amy.1"}, True),
    ("block_list", {"context": "other"}, True),
    ("block_create", {"context": "other", "kind": "text"}, True),
    ("block_move", {"block_id": "default.amy.1", "after": "other.amy.1"}, True),
    ("block_attach", {"block_id": "default.amy.1", "files": []}, True),
    ("block_read", {"block_id": "default.nobody.99"}, False),
    ("source_list", {}, False),
    ("source_add", {"sources": []}, False),
    ("context_layout", {"context": "default"}, False),
    ("context_list", {}, True),
    ("context_fork", FORK, True),
    ("drift_push", {"to": "other", "context": "default"}, True),
    ("drift_pull", {"source": "other", "context": "default"}, True),
    ("drift_distill", {"source": "default", "context": "default"}, True),
    ("kernel_search", {"query": "x"}, True),
    ("file_read", {"path": "a.txt"}, False),
    ("file_list", {}, False),
    ("file_search", {"query": "x"}, False),
    ("file_edit", {"path": "a.txt", "new_text": ""}, True),
    ("apply_patch", {"patch": ""}, True),
    ("kernel_role", {"principal": "bo", "role": "owner"}, True),
    ("message_append", {"messages": []}, True),
    ("no_such_tool", {}, True),
]
"""Calls, and whether somebody is asked about them."""


async def test_call_without_a_policy_is_asked_about_unless_it_works_here(asking: Asking) -> None:
    await asking.stage.call("context.create", label="other")
    await asking.stage.call(
        "block.create", context="other", kind="text", content="x", status="done"
    )
    for tool, arguments, asks in WITHOUT_POLICY:
        call = await asking.call(asking.stage.owner, tool, **arguments)
        assert call.task.done() is not asks, tool
        if not asks:
            assert await call.refusal() is None
            assert asking.header(call.block).permission is None, tool


POLICIES: Final[list[tuple[dict[str, str], tuple[str, ...], str, bool | None]]] = [
    ({"shell": "allow"}, (), "rm x", True),
    ({"shell": "deny"}, ("touch *",), "touch ran", False),
    ({"shell": "ask"}, ("touch *",), "touch ran", True),
    ({}, ("touch *",), "touch ran", True),
    ({}, ("touch *",), "touch ran; rm x", None),
    ({"*": "deny"}, (), "touch ran", False),
]


async def test_policy_decides_by_tool_and_pattern(
    open_stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = await open_asking(open_stage)
    models = asking.stage.runner.models
    for permits, patterns, command, outcome in POLICIES:
        policy = policy_of(permits, patterns)
        monkeypatch.setattr(models, "permissions", lambda name, policy=policy: policy)
        call = await asking.call(asking.stage.owner, command=command)
        if outcome is None:
            assert not call.task.done(), command
            continue
        denied = "The policy of this kernel denies shell to this model."
        assert await call.refusal() == (None if outcome else denied)


# Who decides

OWNER, EDITOR, AGENT, VIEWER = (
    AccessRole.OWNER,
    AccessRole.EDITOR,
    AccessRole.AGENT,
    AccessRole.VIEWER,
)


DECIDERS: Final = (
    ("shell", "amy", "amy", True),
    ("shell", "amy", "owner2", True),
    ("shell", "owner2", "amy", True),
    ("shell", "owner2", "owner2", True),
    ("shell", "amy", "editor", False),
    ("shell", "amy", "viewer", False),
    ("shell", "amy", "agent", False),
    ("context_fork", "editor", "editor", True),
    ("context_fork", "editor", "amy", True),
    ("context_fork", "editor", "editor2", False),
    ("context_fork", "editor", "viewer", False),
    ("context_fork", "editor", "agent", False),
    ("context_fork", "agent", "agent", False),
    ("context_fork", "agent", "amy", True),
    ("context_fork", "amy", "editor", False),
)
"""Tool, whose message is answered, who decides, and whether they may."""


@pytest.mark.parametrize("decision", ["once", "always", "no"])
async def test_decision_is_for_whoever_prompted_and_for_owners(
    asking: Asking, decision: str
) -> None:
    people = {
        "amy": asking.stage.owner,
        "owner2": await asking.somebody("owner2", OWNER),
        "editor": await asking.somebody("editor", EDITOR),
        "editor2": await asking.somebody("editor2", EDITOR),
        "agent": await asking.somebody("agent", AGENT),
        "viewer": await asking.somebody("viewer", VIEWER),
    }
    for number, (tool, asker, decider, may) in enumerate(DECIDERS):
        case = (tool, asker, decider)
        # Each call has arguments of its own: no rule that was made before allows it.
        own = {"command": f"touch {number}"} if tool == "shell" else {**FORK, "label": f"{number}"}
        call = await asking.call(people[asker], tool, **own)
        header = asking.header(call.block)
        assert (header.permission, header.runs_for, header.decided_by) == ("asked", asker, None)
        (listed,) = (await asking.listed(people[decider]))["undecided"]
        assert listed["may_decide"] is may, case
        assert (listed["tool"], listed["arguments"], listed["runs_for"]) == (tool, own, asker)
        if not may:
            deciding = asking.decide(people[decider], call, decision)
            await refused(ErrorCode.PERMISSION_DENIED, deciding)
            assert asking.header(call.block).permission == "asked", case
            assert not call.task.done(), case
            call.task.cancel()
            await asyncio.wait({call.task})
            continue
        await asking.decide(people[decider], call, decision)
        assert (await call.refusal() is None) is (decision != "no"), case
        header = asking.header(call.block)
        word = {"no": "denied"}.get(decision, decision)
        assert (header.permission, header.decided_by) == (word, decider), case
        assert not (await asking.listed())["undecided"]


async def test_shell_call_for_a_person_without_shell_rights_is_refused_and_asks_nobody(
    asking: Asking,
) -> None:
    for role in (EDITOR, AGENT):
        call = await asking.call(await asking.somebody("bo", role), **COMMAND)
        refusal = await call.refusal() or ""
        assert refusal.startswith(f"This turn answers a message of bo, {role.described()},")
        assert asking.header(call.block).permission is None
        assert not (await asking.listed())["undecided"]


async def test_model_approves_by_no_tool_and_not_as_an_owner(asking: Asking) -> None:
    call = await asking.call(asking.stage.owner, **COMMAND)
    model, kernel = await asking.model(), asking.stage.kernel
    forged = {"permission": "once", "decided_by": "amy"}
    tries: list[tuple[str, dict[str, Any]]] = [
        ("permission.decide", {"block_id": call.block, "decision": "once"}),
        ("permission.decide", {"block_id": call.block, "decision": "always"}),
        ("block.set_field", {"block_id": call.block, "field": "permission", "value": "once"}),
        ("block.status", {"block_id": call.block, "status": "pending", **forged}),
        ("block.create", {"kind": "tool_call", "parent_id": call.block, "metadata": forged}),
        ("block.import", {"block_id": call.block, "content": forged}),
        ("turn.start", {"message": call.block}),
        ("kernel.role", {"principal": MODEL, "role": "owner"}),
    ]
    for tool, params in tries:
        with pytest.raises(AntiphonError):
            await kernel.call(model, tool, params)
        assert asking.header(call.block).permission == "asked", tool
        assert not call.task.done(), tool
    principal = await kernel.principal("zed", PrincipalKind.MODEL)
    await kernel.members.give_role(principal, OWNER)
    zed = kernel.open_session(principal, "test")
    await refused(ErrorCode.PERMISSION_DENIED, asking.decide(zed, call))
    assert not call.task.done(), "also as an owner"


# Which decision counts


async def test_first_of_two_decisions_counts_and_is_in_the_log_with_its_name_and_reason(
    asking: Asking,
) -> None:
    call = await asking.call(asking.stage.owner, **COMMAND)
    bo = await asking.somebody("bo", OWNER)
    answers = await asyncio.gather(
        asking.decide(bo, call, "no", reason="Use the other file."),
        asking.decide(asking.stage.owner, call, "once"),
        return_exceptions=True,
    )
    (error,) = [one for one in answers if isinstance(one, AntiphonError)]
    winner = asking.header(call.block).decided_by
    assert error.code is ErrorCode.INVALID_TRANSITION
    assert f"{winner} has" in error.message
    said = "bo said no: Use the other file."
    assert await call.refusal() == (said if winner == "bo" else None)
    log = await audit_log(asking.stage.kernel.project / "data")
    logged = [(one.username, one.what) for one in log if one.blocks == (call.block,)]
    assert ("system", "permission: asked") in logged
    assert (winner, f"permission: {'denied' if winner == 'bo' else 'once'}") in logged


WITHDRAWN_BY: dict[str, dict[str, Any]] = {
    "block.append": {"text": "ls", "stream": False},
    "block.exclude": {},
    "block.status": {"status": "error"},
}


async def test_withdrawn_call_cannot_be_decided(asking: Asking) -> None:
    owner = asking.stage.owner
    for by in ("interrupt", "raw update", *WITHDRAWN_BY):
        call = await asking.call(owner, **COMMAND)
        block = call.block
        match by:
            case "interrupt":
                call.task.cancel()
                await asyncio.wait({call.task})
            case "raw update":
                change = partial(insert_in, block)
                await write_raw(asking.stage.context, owner, change)
            case _:
                await asking.stage.call(by, block_id=block, **WITHDRAWN_BY[by])
        error = await refused(ErrorCode.INVALID_TRANSITION, asking.decide(owner, call))
        assert "waits for no decision: the turn has ended, or the call was" in error.message, by
        await until(partial(is_withdrawn, asking, block), by)
        assert not (await asking.listed())["undecided"]
        if by != "interrupt":
            assert "changed or hidden" in (await call.refusal() or ""), by


def is_withdrawn(asking: Asking, block: str) -> bool:
    return asking.header(block).permission == "withdrawn"


def insert_in(block: str, blocks: Any) -> None:
    blocks[block]["content"].insert(0, "ls")


async def test_call_of_an_asker_who_has_to_go_is_withdrawn(asking: Asking) -> None:
    for tool, params, who in (
        ("kernel.role", {"role": "editor"}, "bo, an editor"),
        ("kernel.role", {"role": "viewer"}, "bo, a viewer"),
        ("kernel.kick", {}, "bo, who has been kicked"),
    ):
        call = await asking.call(await asking.somebody("bo", OWNER), **COMMAND)
        await asking.stage.call(tool, principal="bo", **params)
        assert f"a message of {who}" in (await call.refusal() or "")
        await refused(ErrorCode.INVALID_TRANSITION, asking.decide(asking.stage.owner, call))
        assert asking.header(call.block).permission == "withdrawn"


# Rules


async def always(asking: Asking, by: Actor, asker: Actor, **arguments: Any) -> AskedCall:
    call = await asking.call(asker, **arguments)
    await asking.decide(by, call, "always")
    assert await call.refusal() is None
    return call


async def test_rule_allows_the_exact_call_in_this_context_only(asking: Asking) -> None:
    amy = asking.stage.owner
    await always(asking, amy, amy, command="git log 'a'")
    again = await asking.call(amy, command="git log 'a'")
    assert await again.refusal() is None
    header = asking.header(again.block)
    assert (header.permission, header.decided_by) == ("always", "amy")
    for other in ("git log a", "git log 'a' ", "git  log 'a'", "git log 'a'; ls", "git log 'A'"):
        assert not (await asking.call(amy, command=other)).task.done()
    asking.stage.context = await asking.stage.kernel.create_context("other")
    elsewhere = asking.stage.context
    asking.stage.draft = _draft_in(asking, elsewhere.id)  # type: ignore[method-assign]
    assert not (await asking.call(amy, command="git log 'a'")).task.done()


def _draft_in(asking: Asking, context: str) -> Any:
    async def draft(text: str, actor: Actor | None = None) -> str:
        made = await asking.stage.call("block.create", context=context, kind="text", content=text)
        return str(made["block_id"])

    return draft


async def test_revoked_rule_allows_nothing_and_names_who_revoked_it(
    asking: Asking,
) -> None:
    amy, bo = asking.stage.owner, await asking.somebody("bo", OWNER)
    call = await always(asking, amy, amy, **COMMAND)
    (rule,) = (await asking.listed())["rules"]
    assert (rule["tool"], rule["arguments"], rule["decided_by"]) == ("shell", COMMAND, "amy")
    editor = await asking.somebody("ed", EDITOR)
    await refused(
        ErrorCode.PERMISSION_DENIED,
        asking.stage.kernel.call(editor, "permission.revoke", {"rule": rule["rule"]}),
    )
    revoked = await asking.stage.kernel.call(bo, "permission.revoke", {"rule": rule["rule"]})
    assert revoked == {"revoked": [rule["rule"]]}
    header = asking.header(call.block)
    assert (header.permission, header.decided_by) == ("revoked", "bo")
    assert not (await asking.listed())["rules"]
    assert not (await asking.call(amy, **COMMAND)).task.done()
    await refused(
        ErrorCode.INVALID_PARAMS, asking.stage.call("permission.revoke", rule=rule["rule"])
    )
    for command in ("a", "b"):
        await always(asking, amy, amy, command=command)
    nothing = await asking.stage.kernel.call(editor, "permission.revoke", {"context": "default"})
    assert nothing == {"revoked": []}
    done = await asking.stage.call("permission.revoke", context="default")
    assert len(done["revoked"]) == 2, "all of a context"
    assert not (await asking.listed())["rules"]


async def test_rule_of_a_demoted_or_kicked_owner_does_not_hold(asking: Asking) -> None:
    amy, bo = asking.stage.owner, await asking.somebody("bo", OWNER)
    await always(asking, bo, amy, **COMMAND)
    assert await (await asking.call(amy, **COMMAND)).refusal() is None
    await asking.stage.call("kernel.role", principal="bo", role="editor")
    assert not (await asking.call(amy, **COMMAND)).task.done()
    await asking.stage.call("kernel.role", principal="bo", role="owner")
    await asking.stage.call("kernel.kick", principal="bo")
    assert not (await asking.call(amy, **COMMAND)).task.done()


async def test_rule_of_an_editor_does_not_hold_for_calls_of_others(asking: Asking) -> None:
    ed = await asking.somebody("ed", EDITOR)
    await always(asking, ed, ed, tool="context_fork", **FORK)
    assert await (await asking.call(ed, "context_fork", **FORK)).refusal() is None
    assert not (await asking.call(asking.stage.owner, "context_fork", **FORK)).task.done()


# Forgery


async def test_raw_update_that_writes_a_decision_is_refused(asking: Asking) -> None:
    call = await asking.call(asking.stage.owner, **COMMAND)
    people = (asking.stage.owner, await asking.somebody("editor", EDITOR), await asking.model())
    forged = ("permission", "once"), ("decided_by", "amy"), ("runs_for", "bo"), ("status", "done")
    for who, (name, value) in itertools.product(people, forged):

        def forge(blocks: Any, name: str = name, value: str = value) -> None:
            blocks[call.block][name] = value

        await refused(ErrorCode.PERMISSION_DENIED, write_raw(asking.stage.context, who, forge))
        assert asking.header(call.block).permission == "asked"
        assert not call.task.done()


async def test_new_block_that_claims_a_decision_is_refused(asking: Asking) -> None:
    for field in ("permission", "runs_for", "decided_by"):
        params = {"kind": "tool_call", "content": "ls", "metadata": {field: "once"}}
        await refused(ErrorCode.INVALID_PARAMS, asking.stage.call("block.create", **params))


TOUCH = ToolCallEvent("c1", "shell", {"command": "touch ran"})


class House:
    """A project whose kernel is started again and again, with a model that asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.provider = Replying([TOUCH], [TextDelta("Done.")])
        self.has_model = True
        self.stage: Stage

    async def start(self) -> None:
        kernel = await open_kernel(self.folder)
        models = remote(self.provider, PermissionPolicy()) if self.has_model else Models()
        runner = TurnRunner(kernel, models)
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
        (one,) = self.stage.of_kind(BlockKind.TOOL_CALL)
        return one

    def has_ran(self) -> bool:
        return (self.folder / "ran").exists()

    def is_asked(self) -> bool:
        return any(one.permission == "asked" for one in self.stage.headers())

    async def ask(self, actor: Actor | None = None) -> None:
        """Have the model make its call in answer to a message."""
        await self.stage.submit("Touch it.", actor)
        await until(self.is_asked)

    async def decide(self, decision: str) -> None:
        await self.stage.call("permission.decide", block_id=self.call().id, decision=decision)

    async def decide_in_vain(self) -> None:
        with pytest.raises(AntiphonError, match="waits for no decision"):
            await self.decide("once")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "project")
    await house.start()
    yield house
    await house.stop()


@pytest.mark.parametrize("restarts", [False, True])
async def test_interrupted_turn_withdraws_its_call(house: House, restarts: bool) -> None:
    await house.ask()
    if restarts:
        await house.restart()
        await until(lambda: house.stage.runner.works(house.stage.context))
    assert await house.stage.interrupt() == ["aria"]
    assert (house.call().status, house.call().permission) == ("error", "withdrawn")
    assert not (await house.stage.call("permission.list"))["undecided"]
    await house.decide_in_vain()
    assert not house.has_ran()


@pytest.mark.parametrize(
    ("decision", "restarts"),
    [
        ("once", ()),
        ("once", (House.restart, House.restart)),
        ("no", (House.crash,)),
        ("always", (House.crash, House.crash)),
    ],
)
async def test_undecided_call_survives_restarts_and_its_turn_goes_on(
    house: House, decision: str, restarts: Any
) -> None:
    await house.ask()
    for again in (House.is_asked, *restarts):
        if again is not House.is_asked:
            await again(house)
        assert (house.call().status, house.call().permission) == ("pending", "asked")
        (listed,) = (await house.stage.call("permission.list"))["undecided"]
        assert (listed["block_id"], listed["runs_for"]) == (house.call().id, "amy")
        assert house.stage.text(house.call()) == "touch ran" and not house.has_ran()
    await house.decide(decision)
    await house.stage.runner.wait_idle()
    assert house.has_ran() is (decision != "no")
    assert house.call().status == ("error" if decision == "no" else "done")
    assert house.stage.shown()[-1] == ("text", "done", "Done.")
    assert not (await house.stage.call("permission.list"))["undecided"]
    if decision != "always":
        return
    await house.crash()
    (house.folder / "ran").unlink()
    house.provider.then([TOUCH], [TextDelta("Done.")])
    await house.stage.play("Once more.")
    assert house.has_ran(), "the rule survives, too"
    (rule,) = (await house.stage.call("permission.list"))["rules"]
    assert (rule["decided_by"], rule["arguments"]) == ("amy", {"command": "touch ran"})


async def test_call_of_a_model_that_is_gone_after_a_restart_is_withdrawn(house: House) -> None:
    await house.ask()
    house.has_model = False
    await house.restart()
    await until(lambda: house.call().permission == "withdrawn")
    await until(lambda: house.call().status == "error")
    await house.decide_in_vain()


@pytest.mark.parametrize("loses", ["role", "invitation", "time"])
async def test_call_of_an_asker_who_has_to_go_before_a_restart_is_not_asked_again(
    house: House, loses: str
) -> None:
    kernel = house.stage.kernel
    issued = await kernel.invitations.invite(AccessRole.EDITOR, name="co", expires=None, uses=None)
    await kernel.members.give_role(issued.principal, AccessRole.OWNER)
    number = issued.credential.number
    co = kernel.open_session(issued.principal, "test", credential=number)
    await house.ask(co)
    # As if the kernel had ended between the loss and its consequences.
    match loses:
        case "role":
            await kernel.members.give_role(issued.principal, AccessRole.EDITOR)
        case "invitation":
            await kernel.invitations.revoke({number: Dismissal(CloseCode.REVOKED, "")})
        case _:
            await kernel.members.ban(issued.principal, kernel.clock.now_ms() + 3_600_000)
    await house.crash()
    await until(lambda: house.call().permission == "withdrawn")
    await house.decide_in_vain()
    await house.stage.runner.wait_idle()
    assert not house.has_ran()


async def test_copies_of_an_undecided_call_ask_nobody(house: House) -> None:
    await house.ask()
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
    await house.ask()
    await house.stop()
    for file in (house.folder / "data").glob("auth.db*"):
        file.unlink()
    await house.start()
    assert (house.call().status, house.call().permission) == ("error", "withdrawn")
    await house.decide_in_vain()
    assert not house.has_ran()


@pytest.mark.parametrize("is_cut", [False, True], ids=["short", "long"])
async def test_result_that_its_owner_ends_ends_the_command_and_the_turn_goes_on(
    house: House, is_cut: bool
) -> None:
    house.provider.then([ToolCallEvent("c1", "shell", {"command": "yes"})], [TextDelta("Done.")])
    stage = house.stage
    await stage.submit("Say it.")
    await until(house.is_asked)
    await house.decide("once")
    await until(lambda: any("y" in one for one in stage.results()))
    (result,) = stage.of_kind(BlockKind.TOOL_RESULT)
    document = stage.context.document
    await until(lambda: document.header(result.id).truncated or not is_cut)
    await stage.call("block.status", block_id=result.id, status="done")
    await asyncio.wait_for(stage.runner.wait_idle(), 10)
    assert stage.shown()[-1] == ("text", "done", "Done.")
    assert not stage.unfinished()
