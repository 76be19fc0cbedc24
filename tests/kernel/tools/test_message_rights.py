"""Rights to write messages and to take them out of a conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises

PARTS = [{"type": "text", "text": "part A"}, {"type": "text", "text": "part B"}]


@pytest.fixture
async def agent(kernel: Kernel, amy: Actor, aria: Actor) -> Actor:
    await kernel.call(amy, "kernel.role", {"principal": "aria", "role": AccessRole.AGENT.value})
    messages = [{"role": "user", "content": PARTS}, {"role": "assistant", "content": "yes"}]
    await kernel.call(amy, "message.append", {"messages": messages})
    return aria


async def path(kernel: Kernel, actor: Actor) -> list[Any]:
    found = await kernel.call(actor, "message.path", {})
    return [one["message"]["content"] for one in found["messages"]]


async def denied(kernel: Kernel, actor: Actor, tool: str, **params: Any) -> None:
    """Make a call that must be denied and change nothing."""
    before = [await path(kernel, actor), len(kernel.contexts.rows())]
    with raises(ErrorCode.PERMISSION_DENIED):
        await kernel.call(actor, tool, params)
    assert [await path(kernel, actor), len(kernel.contexts.rows())] == before


async def test_message_append_of_a_person_by_an_agent_is_denied(
    kernel: Kernel, agent: Actor
) -> None:
    for parent in ("default.amy.1", "default.amy.3"):
        messages = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "do it"}]
        await denied(kernel, agent, "message.append", parent=parent, messages=messages)


async def test_message_append_below_messages_of_people_by_an_agent_reuses_them(
    kernel: Kernel, agent: Actor
) -> None:
    messages = [{"role": "user", "content": PARTS}, {"role": "assistant", "content": "no"}]
    made = await kernel.call(agent, "message.append", {"messages": messages})
    assert (made["reused"], made["forked"]) == (1, True)


async def test_message_edit_in_place_by_an_agent_excludes_no_block_of_others(
    kernel: Kernel, agent: Actor
) -> None:
    params = {"message": "default.amy.1", "in_place": True}
    await denied(kernel, agent, "message.edit", content=PARTS[:1], **params)


@pytest.mark.parametrize("in_place", [True, False])
async def test_message_edit_by_an_agent_adds_no_block_to_the_message_of_a_person(
    kernel: Kernel, agent: Actor, in_place: bool
) -> None:
    content = [*PARTS, {"type": "text", "text": "part C"}]
    params = {"message": "default.amy.1", "content": content, "in_place": in_place}
    await denied(kernel, agent, "message.edit", **params)


async def test_message_edit_of_a_text_by_an_agent_is_allowed_as_with_block_edit(
    kernel: Kernel, agent: Actor
) -> None:
    content = [PARTS[0], {"type": "text", "text": "part Z"}]
    params = {"message": "default.amy.1", "content": content, "in_place": True}
    await kernel.call(agent, "message.edit", params)
    assert (await path(kernel, agent))[0] == content


async def test_message_split_of_others_messages_by_an_agent_is_denied_and_of_its_own_is_not(
    kernel: Kernel, agent: Actor
) -> None:
    await denied(kernel, agent, "message.split", message="default.amy.1", at=4)
    own = [{"role": "assistant", "content": "one two"}]
    made = await kernel.call(agent, "message.append", {"parent": "default.amy.3", "messages": own})
    await kernel.call(agent, "message.split", {"message": made["message_id"], "at": 4})
    assert len(await path(kernel, agent)) == 4


async def test_message_delete_of_others_messages_by_an_agent_is_denied(
    kernel: Kernel, agent: Actor
) -> None:
    params = {"messages": ["default.amy.1"], "descendants": "reparent"}
    await denied(kernel, agent, "message.delete", **params)


@pytest.mark.parametrize("role", ["user", "system"])
async def test_message_import_of_what_others_say_by_an_agent_is_denied(
    kernel: Kernel, agent: Actor, role: str
) -> None:
    said = [{"role": "assistant", "content": "ok"}, {"role": role, "content": "do it"}]
    await denied(kernel, agent, "message.import", text=json.dumps({"messages": said}))


async def test_message_delete_by_a_model_takes_out_only_what_it_may_hide(
    kernel: Kernel, amy: Actor, aria: Actor
) -> None:
    await kernel.call(amy, "kernel.role", {"principal": "aria", "role": AccessRole.EDITOR.value})
    texts: list[dict[str, Any]] = [{"role": "user", "content": "first"}]
    for number in range(6):
        call = {"type": "tool-use", "id": f"c{number}", "name": "look", "parameters": {}}
        texts.append({"role": "assistant", "content": [call]})
        texts.append({"role": "tool", "tool_call_id": f"c{number}", "content": "seen"})
    await kernel.call(amy, "message.append", {"messages": texts})
    found = (await kernel.call(aria, "message.path", {}))["messages"]
    early, late = found[1]["message_id"], found[-2]["message_id"]
    for names in ([early], [late, early], [found[0]["message_id"]]):
        how = {"messages": names, "descendants": "reparent"}
        await denied(kernel, aria, "message.delete", **how)
    deleted = {"messages": [late], "descendants": "reparent"}
    assert len((await kernel.call(aria, "message.delete", deleted))["deleted"]) == 2
    deleted = {"messages": [early], "descendants": "reparent"}
    assert len((await kernel.call(amy, "message.delete", deleted))["deleted"]) == 2
