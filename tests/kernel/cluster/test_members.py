"""Members, credentials and permissions of several kernels on one Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.cluster import news
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers import PermissionPolicy, TextDelta
from antiphon_kernel.providers.events import ToolCallEvent
from antiphon_kernel.registry import Registry
from antiphon_kernel.storage import User
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TurnRunner
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole, CredentialKind, Permission
from antiphon_kernel.yjs.close_codes import CloseCode
from tests.errors import raises
from tests.kernel.turns.stage import Replying, Stage, remote
from tests.kernel.turns.stage import open_kernel as open_turns_kernel
from tests.waiting import until

NEVER = 1e6

OpenOne = Callable[[], Awaitable[Kernel]]
OpenOffice = Callable[[], Awaitable[tuple[Kernel, TurnRunner]]]


@pytest.fixture
async def open_one(store: str, tmp_path: Path) -> AsyncIterator[OpenOne]:
    """Opens one more kernel on the database."""
    opened = list[Kernel]()

    async def open_kernel() -> Kernel:
        number = len(opened)
        data = tmp_path / f"data-{number}"
        kernel = await Kernel.open(
            data, tmp_path, registry=Registry(KERNEL_TOOLS), owner="amy", store=store
        )
        opened.append(kernel)
        return kernel

    yield open_kernel
    for kernel in opened:
        await kernel.close()


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels read again when they are told to, and not by themselves."""
    monkeypatch.setattr(news, "LOOK_SECONDS", NEVER)


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are told nothing, and look by themselves."""
    monkeypatch.setattr(news, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(news.ClusterNews, "announce", lambda *_: None)


@pytest.fixture
def left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels neither are told anything nor look."""
    monkeypatch.setattr(news.ClusterNews, "start", lambda _: None)


def owner_of(kernel: Kernel) -> Actor:
    return kernel.open_session(kernel.owner, "test")


async def invited(kernel: Kernel, **params: Any) -> dict[str, Any]:
    """Make an invitation at a kernel."""
    return await kernel.call(owner_of(kernel), "kernel.invite", {"role": "editor", **params})


async def joined(kernel: Kernel, token: str, secret: str | None = None) -> Actor:
    """A session of whoever comes to a kernel with an invitation."""
    principal, credential = await kernel.invitations.authenticate(token, secret)
    kernel.access.check_admission(principal)
    return kernel.open_session(principal, "tcp", credential=credential.number)


DECISIONS: dict[str, tuple[dict[str, Any], CloseCode, str]] = {
    "kernel.kick": (
        {"principal": "bo", "minutes": 0, "reason": "enough"},
        CloseCode.KICKED,
        "amy kicked bo: enough.",
    ),
    "kernel.revoke": (
        {"principal": "bo"},
        CloseCode.REVOKED,
        "amy revoked the invitation.",
    ),
    "kernel.role": (
        {"principal": "bo", "role": "viewer"},
        CloseCode.ROLE_CHANGED,
        "amy made you a viewer: connect again.",
    ),
}


async def ends_elsewhere(first: Kernel, second: Kernel, tool: str) -> None:
    """See that a decision at one kernel ends a person's sessions at another as it does there."""
    params, code, reason = DECISIONS[tool]
    bo = await joined(second, (await invited(first, name="bo"))["token"])
    turn = second.open_work_session(bo, Permission.WRITE)
    amy = owner_of(second)

    await first.call(owner_of(first), tool, params)

    await until(lambda: second.sessions.dismissal(bo))
    ended = [second.sessions.dismissal(one) for one in (bo, turn)]
    assert [one and (one.code, one.reason) for one in ended] == [(code, reason)] * 2
    assert second.sessions.dismissal(amy) is None


async def test_decision_at_one_kernel_is_told_and_ends_sessions_at_others(
    open_one: OpenOne, only_told: None
) -> None:
    first, second = await open_one(), await open_one()
    for tool in DECISIONS:
        await ends_elsewhere(first, second, tool)
    token = (await invited(first, name="cleo"))["token"]
    cleo = await joined(second, token)
    await first.call(owner_of(first), "kernel.kick", {"principal": "cleo", "minutes": 5})
    await until(lambda: second.sessions.dismissal(cleo))
    with pytest.raises(AuthenticationError, match="cleo has been kicked and may come back at"):
        await joined(second, token)

    await first.call(owner_of(first), "kernel.label", {"label": "the office"})
    await first.call(owner_of(first), "session.name", {"display_name": "Amy A."})
    await until(lambda: second.label == "the office")
    await until(lambda: second.members.find("amy").display_name == "Amy A.")


async def test_decision_at_one_kernel_is_looked_at_and_ends_sessions_at_others(
    open_one: OpenOne, looks_often: None
) -> None:
    await ends_elsewhere(await open_one(), await open_one(), "kernel.kick")


async def test_session_that_begins_with_the_new_role_goes_on_when_kernels_read_again(
    open_one: OpenOne, left_alone: None
) -> None:
    kernel = await open_one()
    token = (await invited(kernel, name="bo"))["token"]
    await kernel.call(owner_of(kernel), "kernel.role", {"principal": "bo", "role": "viewer"})
    bo = await joined(kernel, token)
    await kernel.members.give_role(kernel.owner, AccessRole.OWNER)  # so that there is news
    await kernel.members.read_again()
    assert kernel.sessions.dismissal(bo) is None


async def written(kernel: Kernel, actor: Actor, **params: Any) -> str:
    """Write a block in the default context of a kernel, which has it; the block."""
    request = {"kind": "text", "content": "hello", **params}
    return str((await kernel.call(actor, "block.create", request))["block_id"])


async def test_commit_of_demoted_writer_is_refused_where_the_demotion_is_not_known(
    open_one: OpenOne, left_alone: None
) -> None:
    first, second = await open_one(), await open_one()
    bo = await joined(first, (await invited(first, name="bo"))["token"])
    await written(first, bo)
    seq = (await first.context()).seq
    await second.call(owner_of(second), "kernel.role", {"principal": "bo", "role": "viewer"})
    assert first.members.role_of(bo.principal) is AccessRole.EDITOR

    with raises(ErrorCode.PERMISSION_DENIED):
        await written(first, bo)

    assert (await first.context()).seq == seq
    assert first.members.role_of(bo.principal) is AccessRole.VIEWER
    ended = first.sessions.dismissal(bo)
    assert ended is not None
    expected = CloseCode.ROLE_CHANGED, "amy made you a viewer: connect again."
    assert (ended.code, ended.reason) == expected


async def test_commit_of_writer_whom_another_kernel_has_made_or_given_rights_is_written(
    open_one: OpenOne, left_alone: None
) -> None:
    first, second = await open_one(), await open_one()
    await second.principal("zoe")
    await written(first, first.open_session(await first.principal("zoe"), "test"))

    await first.principal("aria", PrincipalKind.MODEL)
    aria = first.open_session(first.members["aria"], "turn")
    await second.call(owner_of(second), "kernel.role", {"principal": "aria", "role": "editor"})
    prompt = await written(first, owner_of(first))
    context = await first.context()

    await written(first, aria, parent_id=prompt)

    assert (await first.context()) is context
    assert first.members.role_of(aria.principal) is AccessRole.EDITOR


async def test_kernels_that_open_an_empty_database_at_once_found_one(open_one: OpenOne) -> None:
    kernels = await asyncio.gather(*(open_one() for _ in range(3)))
    assert len({(one.id, one.owner.id, one.system.principal.id) for one in kernels}) == 1
    for kernel in kernels:
        await kernel.members.read_again()
        await kernel.contexts.load()
        assert sorted(one.username for one in kernel.members) == ["amy", "system"]
        assert [row.label for row in kernel.contexts.rows()] == ["default"]


async def test_invitation_used_at_two_kernels_at_once_lets_in_as_many_as_allowed(
    open_one: OpenOne, left_alone: None
) -> None:
    kernels = [await open_one(), await open_one()]
    for attempt, (uses, named) in enumerate([(1, False), (3, True), (3, False)] * 2):
        name = {"name": f"guest-of-{attempt}"} if named else {}
        made = await invited(kernels[0], uses=uses, **name)
        comes = [
            joined(kernel, made["token"], f"secret of client {client} " + kernel.data.name)
            for client in range(3)
            for kernel in kernels
        ]
        came = await asyncio.gather(*comes, return_exceptions=True)
        let_in = [one for one in came if isinstance(one, Actor)]
        refused = [str(one) for one in came if not isinstance(one, Actor)]
        assert len(let_in) == uses
        words = f"The invitation, for {uses}, is used up: ask for another."
        assert refused == [words] * (len(comes) - uses)
        assert len({one.principal.id for one in let_in}) == (1 if named else uses)
        sql = f"SELECT uses FROM credentials WHERE number = {made['invitation']}"
        assert await kernels[0].members.auth.database.select(sql) == [(uses,)]


async def test_uses_beyond_those_allowed_are_refused_and_those_of_known_clients_not_counted(
    open_one: OpenOne, left_alone: None
) -> None:
    """Also of a kernel that was stopped for so long that it is no longer alone."""
    kernel, other = await open_one(), await open_one()
    made = await invited(kernel, name="bo", uses=1)
    credential = kernel.invitations.credentials[made["invitation"]]
    await kernel.members.auth.count_use(credential, None)
    with raises(ErrorCode.STORAGE_FAILED):
        await kernel.members.auth.count_use(credential, None)

    # A client that one kernel knows is not counted again at another.
    token = (await invited(kernel, uses=1))["token"]
    secret = "the secret of this program"
    here, there = await joined(kernel, token, secret), await joined(other, token, secret)
    assert here.principal == there.principal


async def test_people_made_at_two_kernels_are_found_at_both_and_have_names_of_their_own(
    open_one: OpenOne, left_alone: None
) -> None:
    first, second = await open_one(), await open_one()
    for attempt in range(5):
        name = f"zoe-{attempt}"
        made = await asyncio.gather(first.principal(name), second.principal(name))
        assert made[0] == made[1]
        assert first.members.role_of(made[0]) == second.members.role_of(made[1])

    guests = await asyncio.gather(
        *(one.members.create_guest("guest", AccessRole.VIEWER) for one in (first, second) * 3)
    )
    names = ["guest", *(f"guest{number}" for number in range(2, 7))]
    assert sorted(one.username for one in guests) == names
    assert len({one.id for one in guests}) == 6

    zoe = await first.principal("zoe", role=AccessRole.VIEWER)
    yan = await first.principal("yan")
    assert await second.members.look_up("zoe") == zoe
    assert second.members.role_of(zoe) is AccessRole.VIEWER
    assert second.members.find(yan.id) == yan
    with raises(ErrorCode.INVALID_PARAMS):
        await second.members.look_up("xyz")

    # Somebody known at another kernel is invited by the founder only.
    boss = second.open_session(await second.principal("boss", role=AccessRole.OWNER), "test")
    await first.principal("zen")
    with raises(ErrorCode.PERMISSION_DENIED):
        await second.call(boss, "kernel.invite", {"role": "editor", "name": "zen"})


async def test_decisions_at_several_kernels_at_once_leave_all_with_the_same(
    open_one: OpenOne, only_told: None
) -> None:
    random = Random(0)
    kernels = [await open_one() for _ in range(3)]
    invitations = [await invited(kernels[0], name=f"person-{number}") for number in range(4)]

    def decision() -> Awaitable[object]:
        kernel, made = random.choice(kernels), random.choice(invitations)
        name, number = made["username"], made["invitation"]
        tool, params = random.choice(
            [
                ("kernel.role", {"principal": name, "role": random.choice(["viewer", "editor"])}),
                ("kernel.kick", {"principal": name, "minutes": random.choice([0, 5])}),
                ("kernel.revoke", {"invitation": number}),
                ("kernel.revoke", {"principal": name}),
                ("kernel.invite", {"role": "viewer"}),
                ("session.name", {"display_name": f"Amy {random.random()}"}),
            ]
        )
        return kernel.call(owner_of(kernel), tool, params)

    await asyncio.gather(*(decision() for _ in range(40)))

    held = []
    for kernel in kernels:
        await kernel.members.read_again()
        people = sorted(kernel.members, key=lambda one: one.username)
        users = [kernel.members.user(one) for one in people if one.username != "system"]
        assert users == sorted(
            await kernel.members.auth.records(User), key=lambda one: one.username
        )
        assert not kernel.members.unsaved
        held.append((people, users, kernel.invitations.of_kind(CredentialKind.TOKEN)))
    assert held[0] == held[1] == held[2]
    assert len({str([one.display_name for one in people]) for people, _, _ in held}) == 1


# Calls of models that wait for decisions


@pytest.fixture
async def open_office(store: str, tmp_path: Path) -> AsyncIterator[OpenOffice]:
    """Opens one more kernel, with a model that asks before it runs a command."""
    opened = list[tuple[Kernel, TurnRunner]]()

    async def open_one() -> tuple[Kernel, TurnRunner]:
        kernel = await open_turns_kernel(tmp_path / str(len(opened)), store=store)
        command = ToolCallEvent("c1", "shell", {"command": "touch ran"})
        provider = Replying([command], [TextDelta("Done.")])
        if opened:
            provider = Replying([TextDelta("Done.")])
        opened.append((kernel, TurnRunner(kernel, remote(provider, PermissionPolicy()))))
        return opened[-1]

    yield open_one
    for kernel, runner in opened:
        await runner.close()
        await kernel.close()


@pytest.mark.parametrize(("decision", "closes"), [("once", True), ("no", False)])
async def test_call_that_waits_is_decided_where_its_context_has_gone_to(
    open_office: OpenOffice, tmp_path: Path, decision: str, closes: bool
) -> None:
    first, working = await open_office()
    second, _ = await open_office()
    stage = Stage(first, await first.context(), working)
    await stage.submit("Touch it.")
    await until(lambda: any(one.permission == "asked" for one in stage.headers()))
    (call,) = stage.of_kind(BlockKind.TOOL_CALL)
    await until(lambda: call.id in second.tool_permissions.undecided)
    if closes:
        await working.close()
        await first.close()
    else:
        await first.open_contexts.hand_over(stage.context.row.number)
        await working.wait_idle()

    params = {"block_id": call.id, "decision": decision}
    await second.call(owner_of(second), "permission.decide", params)

    context = await second.context()
    await until(lambda: context.document.header(call.id).status in ("done", "error"))
    assert (tmp_path / "1" / "ran").exists() is (decision == "once")
    assert not second.tool_permissions.undecided
    assert not (tmp_path / "0" / "ran").exists()


async def test_rule_of_another_kernel_is_listed_until_it_is_forgotten(
    open_one: OpenOne, only_told: None
) -> None:
    first, second = await open_one(), await open_one()
    amy, context = owner_of(first), await first.context()
    desk = first.tool_permissions
    asked = await desk.ask(context.id, "block", amy.principal.id, "shell", {}, amy)
    await until(lambda: "block" in second.tool_permissions.undecided)
    del desk.undecided["block"]
    await desk.allow_always(asked, amy.principal.id)
    await until(lambda: asked.number in second.tool_permissions.rules)
    assert not second.tool_permissions.undecided
    await desk.forget(asked)
    await until(lambda: not second.tool_permissions.rules)
