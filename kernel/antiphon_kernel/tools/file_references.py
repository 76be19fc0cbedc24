"""Blocks that refer to a file: what models read of it there, and how it has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

from antiphon_kernel.conversation import ContextLayout
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import LayoutItem
from antiphon_kernel.text.lines import line_count, number_lines, split_lines
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.tools._common import text_at
from antiphon_kernel.types.block_metadata import FILE_REFERENCE
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.records import Principal

_MOST: Final = 40_000
"""Code points that a model reads of a file at once."""


_HEAD: Final = "version "
"""How the text of a reference begins that is shown."""


class FileReference(NamedTuple):
    """A file, or some of its lines, as it was when a block began to refer to it."""

    context: str
    """Id of the context that the file is."""
    version: int
    """Version of the file's block."""
    lines: range | None = None
    """Counted from 0."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Return the reference of a block; None if it has none."""
        match metadata.get(FILE_REFERENCE):
            case {"context": str(context), "version": int(version), **rest}:
                match rest:
                    case {"start": int(start), "end": int(end)}:
                        return cls(context, version, range(start, end))
                return cls(context, version)
        return None

    def as_json(self) -> dict[str, Any]:
        """Return what the block's metadata say of it."""
        lines = {"start": self.lines.start, "end": self.lines.stop} if self.lines else {}
        return {"context": self.context, "version": self.version, **lines}


async def read_file_references(
    kernel: Kernel, layout: ContextLayout, reader: Principal | None = None
) -> dict[str, int]:
    """Let a layout know the texts of the files that its context refers to.

    Args:
        reader: the model that reads it now; a file that it may not see is hidden from all.

    Returns the version of each file that is shown, by path.
    """
    await layout.load()
    shown: dict[str, int] = {}
    for block in layout.references():
        reference = FileReference.of(block.metadata)
        path = kernel.files.path_of(ContextId(reference.context)) if reference is not None else None
        if reference is None or path is None:
            layout.give_text(block.id, "The file cannot be read any more.")
        elif reader is not None and kernel.files.is_denied(reader, path):
            layout.give_text(block.id, "The file may hold secrets, and is not shown to models.")
        else:
            shown[path] = max(reference.version, shown.get(path, 0))
            if not block.text:
                found = await _texts(kernel, reference)
                text = _shown(reference, found[0]) if found is not None else "It cannot be read."
                layout.give_text(block.id, text)
    return shown


async def file_changes(kernel: Kernel, items: Iterable[LayoutItem]) -> tuple[str, ...]:
    """Return how the files have changed that items refer to, as differences to what they show."""
    changes: list[str] = []
    for item in items:
        reference = FileReference.of(item.block.metadata)
        if reference is None or not item.block.text.startswith(_HEAD):
            continue  # not shown
        found = await _texts(kernel, reference)
        named = item.block.file or ""
        path = kernel.files.path_of(ContextId(reference.context)) or named
        if found is None or (found[0] == found[1] and path == named):
            continue
        before, now, version = found
        diff = unified_diff(before, now, path)
        if len(diff) > _MOST:
            diff = "too much to be shown here: read it again"
        head = named if path == named else f"{named}, now {path}"
        changes.append(f"{head}: version {reference.version} to {version}\n{diff}".rstrip())
    return tuple(changes)


async def _texts(kernel: Kernel, reference: FileReference) -> tuple[str, str, int] | None:
    """Return the text of a file then and now, and the version of now; None if it is not there."""
    try:
        context = await kernel.context(reference.context)
        (block,) = context.document.block_ids()
        before = await text_at(context, block, reference.version)
        return before, context.document.text(block), context.blocks.version(block)
    except (AntiphonError, ValueError):
        return None


def _shown(reference: FileReference, text: str) -> str:
    """Return the text of a file as it is read: with its version, each line with its number."""
    lines = reference.lines or range(line_count(text))
    part = "\n".join(split_lines(text)[lines.start : lines.stop])
    head = f"{_HEAD}{reference.version}, {line_count(text)} lines, counted from 0:"
    numbered = number_lines(part, lines.start)
    if len(numbered) > _MOST:
        cut = numbered[:_MOST].rpartition("\n")[0]
        numbered = f"{cut}\n[the rest is left out: read it by lines]"
    return f"{head}\n{numbered}"
