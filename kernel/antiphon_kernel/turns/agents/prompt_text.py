"""Prompts for agents: a message, and what has changed since the agent last looked."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from acp import helpers, schema

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import current_layout, layout_of
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import ItemType, LayoutItem
from antiphon_kernel.layout.text_forms import LayoutReader, item_text, shortened
from antiphon_kernel.storage import ChangeRow
from antiphon_kernel.text.mentions import without_mentions
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.tools._common import attached_files
from antiphon_kernel.tools.file_references import FileReference
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.ids import SYSTEM, ContextId

_MOST: Final = 100_000
"""Code points of earlier messages that an agent is given, the last ones."""

_LEFT_OUT: Final = (ItemType.THINKING, ItemType.TOOL_CALL, ItemType.ASSISTANT_ERROR)

_SHARED: Final = (
    "This conversation is a document that people and programs write together, at the same time."
)


async def read_prompt(
    turn: AgentTurn, seen: int, can: schema.PromptCapabilities
) -> tuple[list[helpers.ContentBlock], int]:
    """Return the prompt of a turn, and the version of the context that it shows.

    Args:
        seen: the version that the agent has seen; 0 if it has seen nothing.
        can: kinds of content that the agent takes.
    """
    context, me = turn.writer.context, turn.writer.actor.principal.id
    await current_layout(context)
    layout = layout_of(context)
    items = [one for one in layout.read(me, live=layout.turn_of(turn.prompt)).items if one.is_block]
    message = {turn.prompt, *(one.id for one in attached_files(context, turn.prompt))}
    version = context.seq
    await context.wait_persisted()
    rows = await context.journal.changes_since(seen)
    before, own = list[LayoutItem](), list[LayoutItem]()
    for item in [one for one in items if one.block.id in rows.keys() - message]:
        (own if seen and item.block.author.id == me else before).append(item)
    told = _told(before) + [await _change(context, me, one, rows[one.block.id]) for one in own]
    text = without_mentions(context.document.text(turn.prompt))
    parts: list[helpers.ContentBlock] = []
    if any(told):
        told.insert(0, "Since you have last looked:" if seen else _SHARED)
        parts.append(helpers.text_block("\n\n".join([*filter(None, told), "The message to you:"])))
    # A command of the agent's is one only at the beginning.
    at = 0 if text.startswith("/") else len(parts)
    parts.insert(at, helpers.text_block(text))
    parts += await _attachments(turn.writer.kernel, context, turn.prompt, can)
    return parts, version


def _told(items: Sequence[LayoutItem]) -> list[str]:
    """Return what items say, each with its author; of too much the end."""
    reader, told, room = LayoutReader(None, True, True), list[str](), _MOST
    for item in reversed([one for one in items if one.type not in _LEFT_OUT]):
        block = item.block._replace(text=shortened(item.block.text, item.path))
        text = item_text(item._replace(block=block), reader)
        if not text.strip():
            continue
        room -= len(text)
        if room < 0:
            told.append("[earlier messages are left out]")
            break
        told.append(text)
    return told[::-1]


async def _change(
    context: Context, me: str, item: LayoutItem, made: Sequence[ChangeRow[str]]
) -> str:
    """Return how others have changed a text of the agent, as a difference; "" if not at all."""
    block, others = item.block, {one.principal for one in made} - {me, SYSTEM}
    is_text = block.kind == BlockKind.TEXT and context.document.schema(block.id) == TEXT
    if not others or not is_text:
        return ""
    history, then = await context.history(block.id), made[0].versions[block.id] - 1
    before = "".join(
        one.text
        for one in history.timeline()
        if (one.principal == me and one.since > then)
        or (one.since <= then and (one.until is None or one.until > then))
    )
    difference = unified_diff(before, block.text, context.block_name(block.id))
    who = ", ".join(sorted(map(context.username, others)))
    shown = shortened(difference, item.path)
    return f"{who} changed your text:\n{shown}" if difference else ""


async def _attachments(
    kernel: Kernel, context: Context, message: str, can: schema.PromptCapabilities
) -> list[helpers.ContentBlock]:
    """Return the files of a message: by their place in the project, or as they were attached."""
    parts: list[helpers.ContentBlock] = []
    for header in attached_files(context, message):
        name, kind = (header.path or "file").rpartition("/")[2], header.media_type
        reference = FileReference.of(header.metadata)
        path = kernel.files.path_of(ContextId(reference.context)) if reference is not None else None
        data = await kernel.journal.blob(header.blob) if header.blob is not None else None
        if path is not None and reference is not None:
            lines, uri = reference.lines, (kernel.project / path).as_uri()
            name += f"#L{lines.start + 1}-L{lines.stop}" if lines else ""
            parts.append(helpers.resource_link_block(name, uri))
        elif text := context.document.text(header.id):
            resource = helpers.embedded_text_resource(f"attachment:///{name}", text, mime_type=kind)
            plain = helpers.text_block(f"Attached {name}:\n{text}")
            parts.append(helpers.resource_block(resource) if can.embedded_context else plain)
        elif data is not None and kind is not None and kind.startswith("image/") and can.image:
            parts.append(helpers.image_block(b64encode(data).decode(), kind))
        else:
            parts.append(helpers.text_block(f"[attached file: {name}]"))
    return parts
