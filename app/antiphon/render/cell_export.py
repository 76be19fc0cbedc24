"""One cell as Markdown, to be pasted elsewhere."""

from __future__ import annotations

import re

from antiphon.render.tool_call import command_of
from antiphon.render.view import CellView
from antiphon_kernel.types.enums import BlockKind

_FENCE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def cell_markdown(view: CellView) -> str:
    """Return the cell under its author's name; calls, output and files in fences."""
    text = view.text
    match view.header.kind:
        case BlockKind.TOOL_CALL:
            text = fenced(f"$ {command_of(view)}", "console")
        case BlockKind.TOOL_RESULT:
            text = fenced(text, "")
        case BlockKind.FILE:
            text = f"`{view.header.path}`\n\n{fenced(text, view.header.language or '')}"
        case BlockKind.THINKING:
            text = "".join(f"> {line}".rstrip() + "\n" for line in text.splitlines())
    return f"**{view.author}**\n\n{text.rstrip()}\n"


def fenced(text: str, language: str) -> str:
    """Return a text as a code block, in a fence that it does not contain."""
    longest = max((len(one) for one in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{language}\n{text}{end}{fence}\n"
