"""Prompts for agents: a message, and what has changed since the agent last looked."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptCapabilities,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

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

PromptPart = (
    TextContentBlock | ImageContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)

_MOST: Final = 100_000
"""Code points of earlier messages that an agent is given, the last ones."""

_MOST_CHANGES: Final = 20_000
"""Code points of changes of one text that an agent is given."""

_LEFT_OUT: Final = (ItemType.THINKING, ItemType.TOOL_CALL, ItemType.ASSISTANT_ERROR)

_SHARED: Final = (
    "This conversation is a document that people and programs write together, at the same time."
)


@dataclass(frozen=True, slots=True)
class Look:
    """What an agent has seen of a context."""

    version: int = 0
    """Version of the context; 0 if it has seen nothing of it."""
    blocks: frozenset[str] | None = None
    """The blocks that it was told of; None if only the version is known."""


async def read_prompt(
    turn: AgentTurn, seen: Look, can: PromptCapabilities
) -> tuple[list[PromptPart], Look]:
    """Return the prompt of a turn, and what the agent has seen once it has read that.

    Args:
        can: kinds of content that the agent takes.
    """
    context, me = turn.writer.context, turn.writer.actor.principal.id
    await current_layout(context)
    layout = layout_of(context)
    items = [one for one in layout.read(me, live=layout.turn_of(turn.prompt)).items if one.is_block]
    message = {turn.prompt, *(one.id for one in attached_files(context, turn.prompt))}
    version = context.seq
    await context.wait_persisted()
    rows = await context.journal.changes_since(seen.version)
    known = seen.blocks
    if known is None:
        ids = {one.block.id for one in items}
        known = frozenset(ids - {one for one in rows if rows[one][0].versions[one] == 1})
    before = [one for one in items if one.block.id not in known | message]
    if seen.version:
        before = [one for one in before if one.block.author.id != me]
    text = without_mentions(context.document.text(turn.prompt))
    parts: list[PromptPart] = []
    told = _told(before)
    if seen.version:
        told += await _changes(context, me, known, rows)
    if told:
        told.insert(0, _SHARED if not seen.version else "Since you have last looked:")
        parts.append(
            TextContentBlock(type="text", text="\n\n".join([*told, "The message to you:"]))
        )
    # A command of the agent's is one only at the beginning.
    at = 0 if text.startswith("/") else len(parts)
    parts.insert(at, TextContentBlock(type="text", text=text))
    parts += await _attachments(turn.writer.kernel, context, turn.prompt, can)
    return parts, Look(version, frozenset(one.block.id for one in items) | message)


def _told(items: Sequence[LayoutItem]) -> list[str]:
    """Return what items say, each with its author; of too much the end."""
    reader, told, room = LayoutReader(None, True, True), list[str](), _MOST
    for item in reversed([one for one in items if one.type not in _LEFT_OUT]):
        text = item_text(item._replace(block=item.block._replace(text=_short(item))), reader)
        if not text.strip():
            continue
        room -= len(text)
        if room < 0:
            told.append("[earlier messages are left out]")
            break
        told.append(text)
    return told[::-1]


def _short(item: LayoutItem) -> str:
    return shortened(item.block.text, item.path)


async def _changes(
    context: Context, me: str, known: frozenset[str], rows: dict[str, list[ChangeRow[str]]]
) -> list[str]:
    """Return how others have changed texts that the agent knows, as differences."""
    told: list[str] = []
    for block, made in rows.items():
        others = dict.fromkeys(
            context.username(one.principal) for one in made if one.principal not in (me, SYSTEM)
        )
        if not others or block not in context.document:
            continue
        header = context.document.header(block)
        if block not in known and header.author != me:
            continue
        if header.kind != BlockKind.TEXT or context.document.schema(block) != TEXT:
            continue
        history, then = await context.history(block), made[0].versions[block] - 1
        before = "".join(
            one.text
            for one in history.timeline()
            if (one.principal == me and one.since > then)
            or (one.since <= then and (one.until is None or one.until > then))
        )
        name = context.block_name(block)
        if difference := unified_diff(before, history.text(), name):
            whose = (
                "your text"
                if header.author == me
                else f"the text of {context.username(header.author)}"
            )
            if len(difference) > _MOST_CHANGES:
                difference = (
                    f"(too much to be shown) It reads now:\n{history.text()[:_MOST_CHANGES]}"
                )
            told.append(f"{', '.join(others)} changed {whose}:\n{difference}")
    return told


async def _attachments(
    kernel: Kernel, context: Context, message: str, can: PromptCapabilities
) -> list[PromptPart]:
    """Return the files of a message: by their place in the project, or as they were attached."""
    parts: list[PromptPart] = []
    for header in attached_files(context, message):
        name, kind = (header.path or "file").rpartition("/")[2], header.media_type
        reference = FileReference.of(header.metadata)
        path = kernel.files.path_of(ContextId(reference.context)) if reference is not None else None
        data = await kernel.journal.blob(header.blob) if header.blob is not None else None
        text = context.document.text(header.id)
        if path is not None:
            place = (kernel.project / path).as_uri()
            lines = reference.lines if reference is not None else None
            mark = f"#L{lines.start + 1}-L{lines.stop}" if lines else ""
            parts.append(ResourceContentBlock(type="resource_link", name=name + mark, uri=place))
        elif data is not None and kind is not None and kind.startswith("image/") and can.image:
            encoded = b64encode(data).decode()
            parts.append(ImageContentBlock(type="image", data=encoded, mime_type=kind))
        elif text and can.embedded_context:
            resource = TextResourceContents(uri=f"attachment:///{name}", text=text, mime_type=kind)
            parts.append(EmbeddedResourceContentBlock(type="resource", resource=resource))
        elif data is not None and can.embedded_context:
            encoded = b64encode(data).decode()
            blob = BlobResourceContents(uri=f"attachment:///{name}", blob=encoded, mime_type=kind)
            parts.append(EmbeddedResourceContentBlock(type="resource", resource=blob))
        else:
            said = f"Attached file {name}:\n{text}" if text else f"[attached file: {name}]"
            parts.append(TextContentBlock(type="text", text=said))
    return parts
