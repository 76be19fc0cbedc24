"""Questions of agents: whether a call of theirs may run, in the agent's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from antiphon_kernel.document.header import json_object
from antiphon_kernel.files.open_file import AnnouncedWrite
from antiphon_kernel.providers import ToolPermit
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import EDIT
from antiphon_kernel.turns.block_writer import SHELL, BlockWriter, begin_call
from antiphon_kernel.turns.permission import PermissionRequest
from antiphon_kernel.turns.turn import one_line
from antiphon_kernel.types.block_metadata import AGENT_CALL, CHOICES
from antiphon_kernel.types.enums import CallPermission
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.json_validation import replace_half_characters

if TYPE_CHECKING:
    from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, ToolCallUpdate

_TOOLS: Final = {"execute": SHELL, "edit": EDIT, "delete": EDIT, "move": EDIT}
"""By the kind of a call, the tool of models whose permission it is under; else it is the kind."""

_KINDS: Final = {
    "allow_once": CallPermission.ONCE,
    "allow_always": CallPermission.ALWAYS,
    "reject_once": CallPermission.DENIED,
    "reject_always": CallPermission.DENIED,
}

_DECISIONS: Final = {
    CallPermission.ONCE: "once",
    CallPermission.ALWAYS: "always",
    CallPermission.DENIED: "no",
}


async def ask(
    turn: AgentTurn, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]
) -> AllowedOutcome | DeniedOutcome:
    """Return the option that the policy or a person has chosen for a call of an agent.

    Of several options of one kind the first counts. When cancelled, nobody can decide any more.
    """
    from acp.schema import AllowedOutcome, DeniedOutcome

    writer, desk = turn.writer, turn.desk
    choices: dict[CallPermission, PermissionOption] = {}
    for option in sorted(options, key=lambda one: one.kind == "reject_always"):
        choices.setdefault(_KINDS[option.kind], option)
    block = turn.calls.get(tool_call.tool_call_id)
    header = writer.context.document.header(block) if block is not None else None
    about = header.metadata.get(AGENT_CALL, {}) if header is not None else {}
    kind = str(tool_call.kind or about.get("kind") or "other")
    tool = _TOOLS.get(kind, kind)
    paths, is_denied = await _paths(turn, tool_call, about)
    raw = tool_call.raw_input or (json_object(header.input or "{}") if header is not None else {})
    command = raw.get("command") if isinstance(raw, dict) else None
    for change in tool_call.content or ():
        if change.type == "diff" and paths:
            await _announce(turn, change.path, change.old_text or "", change.new_text)
    arguments: dict[str, Any] = {"title": tool_call.title or about.get("title") or tool}
    if tool == SHELL and isinstance(command, str):
        arguments["command"] = command
    request = PermissionRequest(
        *(writer.context, block or "", writer.actor.principal.id, tool, arguments),
        turn.asker,
        paths if tool == EDIT else (),
        choices={*choices, CallPermission.DENIED},
    )
    permit = await desk.permit(request)
    if is_denied or permit is ToolPermit.DENY:
        chosen = choices.get(CallPermission.DENIED)
    elif permit is ToolPermit.ALLOW:
        chosen = choices.get(CallPermission.ONCE) or choices.get(CallPermission.ALWAYS)
    else:
        if block is None:
            call_id = one_line(tool_call.tool_call_id) or "call"
            title = tool_call.title or ""
            block = await begin_call(writer, turn.prompt, call_id, tool, title, 0)
            turn.calls[tool_call.tool_call_id] = request.call_block = block
        said = {_DECISIONS[key]: one_line(one.name) for key, one in choices.items()}
        said["tool"] = tool
        writer.describe(block, metadata={CHOICES: said})
        shown = _shown(writer, block)
        refusal = await desk.decide(request)
        decided = writer.context.document.header(block).permission
        chosen = choices.get(
            CallPermission.DENIED if refusal is not None else CallPermission(decided or "once")
        )
        # The agent may have changed its call meanwhile: nobody knows what was read then.
        is_known = refusal is None and _shown(writer, block) == shown
        if is_known and tool == EDIT:
            turn.permitted.update((EDIT, path) for path in paths)
        if is_known and tool == SHELL and isinstance(command, str):
            turn.permitted.add((SHELL, command))
    if chosen is None:
        return DeniedOutcome(outcome="cancelled")
    return AllowedOutcome(outcome="selected", option_id=chosen.option_id)


def _shown(writer: BlockWriter, block: str) -> tuple[object, ...]:
    """Return what people see of a call."""
    header = writer.context.document.header(block)
    return writer.context.document.text(block), header.input, header.metadata.get(AGENT_CALL)


async def _paths(
    turn: AgentTurn, tool_call: ToolCallUpdate, about: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Return the files of the project that a call names, and whether one is denied to agents.

    None are returned if it names others, too: rules for files say nothing of those.

    Args:
        about: what its block says of it.
    """
    named = [str(one["path"]) for one in about.get("locations", ())]
    named += [one.path for one in tool_call.locations or ()]
    named += [one.path for one in tool_call.content or () if one.type == "diff"]
    kernel, principal = turn.writer.kernel, turn.writer.actor.principal
    paths: list[str] = []
    for path in named:
        try:
            found = await kernel.files.find(path)
        except AntiphonError:
            return [], False
        if kernel.files.is_denied(principal, found.shown):
            return [], True
        paths.append(found.shown)
    return paths, False


async def _announce(turn: AgentTurn, path: str, old: str, new: str) -> None:
    """Let a file know what the agent may write to disk by itself, once it is allowed to.

    It is opened, since people may open it and type while they are asked.
    """
    kernel, actor = turn.writer.kernel, turn.writer.actor
    with suppress(AntiphonError):  # it is not there yet, or holds no text
        found = await kernel.files.find_shown(path, actor.principal)
        file = await kernel.files.open(found.shown)
        old, new = (replace_half_characters(one.replace("\r\n", "\n")) for one in (old, new))
        file.announced = AnnouncedWrite(old, new, actor)
