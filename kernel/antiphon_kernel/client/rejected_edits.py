"""Edits that the kernel will not have, in words, so that what was typed is not lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from antiphon_kernel.client.local_replica import PendingEdit
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.yjs.update import ContentKind, decode_update

Keep = Callable[[str], Path]
"""Writes a readable account of refused edits where a person finds it."""

_UNTOLD: Final = "untold-"
"""Start of the name of an account that was written when nobody could be told of it."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Edits of this replica that the kernel refused; the replica went on without them."""

    reason: str
    """The last reason that the kernel gave."""
    edits: int
    """All that this replica has had refused so far; 0 for what an earlier one left behind."""
    file: Path
    """The file where they can be read."""


@dataclass(frozen=True, slots=True)
class RejectedEdit:
    """One edit, and what the kernel said of it."""

    edit: PendingEdit
    reason: str


def write_report(folder: Path) -> Keep:
    """Write accounts one below the other into a new file in `folder`, only for this user.

    Who is refused in the middle of typing is refused several times over: it is one thing to read.
    """
    path: Path | None = None

    def keep(account: str) -> Path:
        nonlocal path
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if path is None or not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / f"refused-{datetime.now():%Y%m%d-%H%M%S-%f}.md"
            flags |= os.O_EXCL
        handle = os.open(path, flags, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(account)
            file.flush()
            os.fsync(file.fileno())
        return path

    return keep


def mark_untold(file: Path) -> None:
    """Rename an account, for `claim_untold` to find it."""
    with suppress(OSError):
        file.rename(file.with_name(_UNTOLD + file.name))


def claim_untold(folder: Path) -> Path | None:
    """Return the oldest account in `folder` that nobody was told of, under its own name again."""
    for file in sorted(folder.glob(f"{_UNTOLD}*.md")):
        told = file.with_name(file.name.removeprefix(_UNTOLD))
        with suppress(OSError):  # another program was faster
            file.rename(told)
            return told
    return None


def format_report(document: Document, refused: Sequence[RejectedEdit]) -> str:
    """Format the refused edits of one document in the order in which they were made."""
    lines = [f"# What the kernel has not confirmed in {document.label or document.context}", ""]
    reason = None
    for heading, body in _paragraphs(document, refused):
        if heading != reason:
            reason = heading
            lines += [f"The kernel said: {heading}", ""]
        lines += [*body, ""]
    return "\n".join(lines)


def format_message(text: str) -> str:
    """Format a message that was written while no kernel had answered yet."""
    return "\n".join(["# A message that no kernel has seen", "", *_quoted(text), ""])


def _paragraphs(
    document: Document, refused: Sequence[RejectedEdit]
) -> Sequence[tuple[str, Sequence[str]]]:
    found: list[tuple[str, Sequence[str]]] = []
    block, reason, splice = "", "", TextSplice(0, 0, "")

    def end_run() -> None:
        nonlocal splice
        where = f"In block {block}, at character {splice.offset}"
        instead = f" instead of {splice.deleted} characters" if splice.deleted else ""
        if splice.inserted:
            found.append((reason, [f"{where}, inserted{instead}:", "", *_quoted(splice.inserted)]))
        elif splice.deleted:
            found.append((reason, [f"{where}: {splice.deleted} characters deleted."]))
        splice = TextSplice(0, 0, "")

    for one in refused:
        change = one.edit.change
        if change is None:
            continue
        for added in change.added:
            end_run()
            text = document.text(added) if added in document else ""
            found.append((one.reason, [f"A new block {added}:", "", *_quoted(text)]))
        for header in change.headers:
            if header.block not in change.added:
                end_run()
                fields = ", ".join(sorted(header.fields))
                found.append((one.reason, [f"In block {header.block}: set {fields}."]))
        for edited in change.texts:
            if edited.block in change.added:
                continue
            if not edited.splices:
                end_run()
                structs = decode_update(one.edit.update).structs
                text = "".join(str(it.content) for it in structs if it.kind is ContentKind.STRING)
                words = [f"In block {edited.block}, inserted:", "", *_quoted(text)]
                found.append((one.reason, words))
            for step in edited.splices:
                is_here = (edited.block, one.reason) == (block, reason) and not step.deleted
                if is_here and step.offset == splice.offset + len(splice.inserted):
                    step = replace(splice, inserted=splice.inserted + step.inserted)
                else:
                    end_run()
                block, reason, splice = edited.block, one.reason, step
    end_run()
    return found


def _quoted(text: str) -> Sequence[str]:
    return [f"    {line}" for line in text.split("\n")]
