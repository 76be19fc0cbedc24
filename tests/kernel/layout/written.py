"""Blocks for tests, written as words: `U` a message, `A` a text, `C1` a call, `R1` its result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon_kernel.layout import BlockAuthor, BlockPosition, Layout, LayoutBlock, LayoutItem
from antiphon_kernel.layout.reading import ModelView
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import SYSTEM, SYSTEM_NAME

AMY = BlockAuthor("1" * 32, "amy")
BEN = BlockAuthor("2" * 32, "ben")
OPUS = BlockAuthor("a" * 32, "opus", PrincipalKind.MODEL)
LYRA = BlockAuthor("b" * 32, "lyra", PrincipalKind.MODEL)
KERNEL = BlockAuthor(SYSTEM, SYSTEM_NAME, PrincipalKind.SYSTEM)

CONTEXT = "c" * 32
START = 1_770_603_271_112
"""Creation of the first block; each next one is a millisecond younger."""


class Writing:
    """A document that blocks are added to."""

    def __init__(self) -> None:
        self.blocks: list[LayoutBlock] = []
        self._count = 0

    @classmethod
    def of(cls, blocks: list[LayoutBlock]) -> Writing:
        """Return a document that has these blocks."""
        writing = cls()
        writing.blocks, writing._count = blocks, len(blocks)
        return writing

    def add(self, author: BlockAuthor, role: Role, kind: BlockKind, **fields: Any) -> LayoutBlock:
        """Add a block at the end."""
        self._count += 1
        block = LayoutBlock(
            id=f"{CONTEXT}.{author.id}.{self._count}",
            author=author,
            role=role,
            kind=kind,
            created=START + self._count,
            **{"text": "", "parameters": JsonObject(), **fields},
        )
        self.blocks.append(block)
        return block

    def user(self, text: str = "Hello", author: BlockAuthor = AMY, **fields: Any) -> LayoutBlock:
        return self.add(author, Role.USER, BlockKind.TEXT, text=text, **fields)

    def say(
        self, prompt: LayoutBlock, text: str = "Well", author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        parent = {"parent": prompt.id, **fields}
        return self.add(author, Role.MODEL, BlockKind.TEXT, text=text, **parent)

    def think(
        self, prompt: LayoutBlock, text: str = "Hm", author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        parent = {"parent": prompt.id, **fields}
        return self.add(author, Role.MODEL, BlockKind.THINKING, text=text, **parent)

    def call(
        self, prompt: LayoutBlock | None, author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        said = {
            "text": "ls",
            "tool_name": "shell",
            "parameters": JsonObject({"command": "ls"}),
            "parent": prompt.id if prompt is not None else None,
            **fields,
        }
        role = Role.MODEL if author.kind is PrincipalKind.MODEL else Role.USER
        return self.add(author, role, BlockKind.TOOL_CALL, **said)

    def result(self, call: LayoutBlock, text: str = "a\nb\n", **fields: Any) -> LayoutBlock:
        said = {"parent": call.id, "tool_name": call.tool_name, "text": text, **fields}
        return self.add(call.author, Role.TOOL, BlockKind.TOOL_RESULT, **said)

    def summary(self, parent: LayoutBlock, text: str = "So far", **fields: Any) -> LayoutBlock:
        said = {"parent": parent.id, "metadata": {"type": SUMMARY_TYPE}, **fields}
        return self.add(KERNEL, Role.SYSTEM, BlockKind.TEXT, text=text, **said)

    def change(self, block: LayoutBlock, **fields: Any) -> LayoutBlock:
        """Replace fields of a block where it stands."""
        changed = block._replace(**fields)
        self.blocks[self.blocks.index(block)] = changed
        return changed


def written(words: str) -> list[LayoutBlock]:
    """Return the blocks of a stream such as `U C1 C2 R1 R2 A`, with the header `H` left out."""
    writing = Writing()
    prompt: LayoutBlock | None = None
    calls: dict[str, LayoutBlock] = {}
    for word in words.replace("·", " ").split():
        match word[0], prompt:
            case "H", _:
                pass
            case "U", _:
                prompt = writing.user(f"Question {word}")
                calls = {}
            case "A", LayoutBlock():
                writing.say(prompt, f"Answer {word}")
            case "C", LayoutBlock():
                calls[word[1:]] = writing.call(prompt)
            case "R", _:
                writing.result(calls[word[1:]])
            case "S", LayoutBlock():
                writing.summary(prompt)
            case _:
                raise ValueError(word)
    return writing.blocks


def marked(view: ModelView, points: Iterable[int]) -> tuple[BlockPosition, ...]:
    """Return the content blocks at which these items end, each once."""
    ends = (view.ends[point] for point in points)
    return tuple(dict.fromkeys(end for end in ends if end is not None))


def names(layout: Layout) -> str:
    """Return the items of a layout in words: those of `written`, without numbers."""
    return " ".join(_name(item) for item in layout.items)


_NAMES = {
    "turn.header": "H",
    "user.prompt": "U",
    "user.message": "M",
    "user.attachment": "F",
    "assistant.completion": "A",
    "react.notes": "N",
    "react.thinking": "T",
    "react.tool.call": "C",
    "react.tool.result": "R",
    "conv.range.summary": "S",
}


def _name(item: LayoutItem) -> str:
    return _NAMES.get(item.type, item.type)
