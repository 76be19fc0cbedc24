"""Questions of agents: whether a call of theirs may run, in the agent's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, ToolCallUpdate

from antiphon_kernel.document.header import json_object
from antiphon_kernel.files.open_file import AnnouncedWrite
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.files import EDIT, as_text
from antiphon_kernel.turns.block_writer import SHELL, BlockWriter
from antiphon_kernel.turns.turn import one_line
from antiphon_kernel.types.block_metadata import CHOICES, agent_call
from antiphon_kernel.types.enums import CallPermission
from antiphon_kernel.types.errors import AntiphonError

_TOOLS: Final = {"execute": SHELL, "edit": EDIT, "delete": EDIT, "move": EDIT}
"""By the kind of a call, the tool of models whose permission it is under; else it is the kind."""

_DECISIONS: Final = {
    "allow_once": "once",
    "allow_always": "always",
    "reject_once": "no",
    "reject_always": "no",
}


async def ask(
    turn: AgentTurn, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]
) -> AllowedOutcome | DeniedOutcome:
    """Return the option that the policy or a person has chosen for a call of an agent.

    What is said of the call is in its block already. Of several options of one kind the first
    counts. When cancelled, nobody can decide any more.
    """
    choices: dict[str, PermissionOption] = {}
    for option in sorted(options, key=lambda one: one.kind == "reject_always"):
        choices.setdefault(_DECISIONS[option.kind], option)
    writer, block = turn.writer, turn.calls[tool_call.tool_call_id].block
    header = writer.context.document.header(block)
    about, said = agent_call(header), json_object(header.input or "{}")
    kind = str(about.get("kind", "other"))
    tool = _TOOLS.get(kind, kind)
    arguments = {"title": str(about.get("title") or tool)}
    if tool == SHELL and isinstance(said.get("command"), str):
        arguments["command"] = said["command"]
    paths, is_denied = await _paths(turn, tool_call, about)
    request = turn.request(tool, arguments, paths if tool == EDIT else ())
    request.call_block = block
    allowing = (CallPermission(one) for one in choices if one != "no")
    request.choices = {CallPermission.DENIED, *allowing}
    words = {key: one_line(one.name) for key, one in choices.items()}
    writer.describe(block, metadata={CHOICES: {**words, "tool": tool}})
    shown, decision = _shown(writer, block), "no"
    if not is_denied and await turn.desk.decide(request) is None:
        decision = writer.context.document.header(block).permission or ""
        if decision not in choices:  # the policy allows it
            decision = "once" if "once" in choices else "always"
        # The agent may have changed its call meanwhile: nobody knows what was read then.
        if _shown(writer, block) == shown:
            named = [arguments["command"]] if "command" in arguments else request.changes
            turn.permitted.update((tool, one) for one in named)
    if decision not in choices:
        return DeniedOutcome(outcome="cancelled")
    return AllowedOutcome(outcome="selected", option_id=choices[decision].option_id)


def _shown(writer: BlockWriter, block: str) -> tuple[object, ...]:
    """Return what people see of a call."""
    header = writer.context.document.header(block)
    return writer.context.document.text(block), header.input, agent_call(header)


async def _paths(
    turn: AgentTurn, tool_call: ToolCallUpdate, about: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Return the files of the project that a call names, and whether one is denied to agents.

    None are returned if it names others, too: rules for files say nothing of those. A file is
    opened and told of its change, which the agent may write to disk by itself while people type.
    """
    changes = [one for one in tool_call.content or () if one.type == "diff"]
    named = [str(one["path"]) for one in about.get("locations", ())]
    named += [one.path for one in (*(tool_call.locations or ()), *changes)]
    files, actor = turn.writer.kernel.files, turn.writer.actor
    try:
        found = {path: (await files.find(path)).shown for path in named}
    except AntiphonError:
        return [], False
    paths = list(found.values())
    if any(files.is_denied(actor.principal, one) for one in paths):
        return paths, True
    for change in changes:
        with suppress(AntiphonError):  # it is not there yet, or holds no text
            file = await files.open(found[change.path])
            old, new = as_text(change.old_text or ""), as_text(change.new_text)
            file.announced = AnnouncedWrite(old, new, actor)
    return paths, False
