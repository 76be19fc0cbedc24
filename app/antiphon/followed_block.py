"""Blocks as a subscription tells them, for what shows each text once and never draws it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from antiphon_kernel.client.tool_client import ToolClient, read_error
from antiphon_kernel.types.block_metadata import CUT_OUT

REST_SECONDS: Final = 1.0
"""How long nobody has edited shown text before its changes are shown."""

_PAGE: Final = 1_000


@dataclass(slots=True)
class FollowedBlock:
    """One block, and how much of its text has been shown."""

    header: Mapping[str, Any]
    version: int = 0
    text: str = ""
    said: str = ""
    """The text that was shown of it."""
    shown: int = 0
    """The part of `text`, from its start, in whose place `said` stands."""
    editors: dict[str, None] = field(default_factory=dict)
    structured: bool = False
    end_said: bool = False

    @property
    def name(self) -> str:
        """Return the words above it: its author, its kind unless it is a text, its name."""
        kind = self.header["kind"]
        what = "" if kind == "text" else f" · {kind.replace('_', ' ')}"
        return f"{self.header['username']}{what} · {self.header['name']}"

    @property
    def waits(self) -> bool:
        """Return whether it is not to be shown now: not sent yet, or cut out."""
        return is_cut_out(self.header) or (is_draft(self.header) and not self.structured)

    @property
    def rest(self) -> str:
        """Text that is not shown yet."""
        return self.text[self.shown :]

    @property
    def over(self) -> bool:
        return self.header["status"] in ("done", "error")

    def take(self, event: Mapping[str, Any], rendered: str | None = None) -> bool:
        """Follow an event; return whether it concerns what is shown of it.

        `rendered` is the content as text, where it is not one text by itself.
        """
        self.version = event["version"]
        self.header = event.get("header", self.header)
        if rendered is not None:
            self.structured = True
            return self._replace(rendered)
        if "content" in event:
            return self._replace(event["content"])
        concerned = [
            self._splice(one["offset"], one["delete_count"], one["insert"])
            for one in event["splices"]
        ]
        return any(concerned)

    def edit(self, event: Mapping[str, Any]) -> None:
        """Keep who has changed what is shown."""
        if (editor := event.get("username")) is not None:
            self.editors[editor] = None

    def _splice(self, offset: int, deleted: int, insert: str) -> bool:
        concerned = offset < self.shown
        if concerned:
            gone = min(self.shown, offset + deleted) - offset
            self.shown += len(insert) - gone
        self.text = self.text[:offset] + insert + self.text[offset + deleted :]
        return concerned

    def _replace(self, text: str) -> bool:
        goes_on = text.startswith(self.said)
        self.shown = len(self.said) if goes_on else len(text)
        self.text = text
        return not goes_on


def is_draft(header: Mapping[str, Any]) -> bool:
    """Return whether a block is a person's message that is still being written."""
    is_message = header["role"] == "user" and header["kind"] == "text"
    return is_message and header["status"] in ("pending", "running")


def is_cut_out(header: Mapping[str, Any]) -> bool:
    """Return whether people are not shown a block until it is brought back."""
    return header.get("excluded") is True and header.get("metadata", {}).get(CUT_OUT) is True


async def list_blocks(calls: ToolClient, context: str) -> list[dict[str, Any]]:
    """Return the headers of all blocks of a context."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"context": context, "limit": _PAGE}
    while True:
        listed = await calls.call("block.list", page)
        found += listed["blocks"]
        if "next" not in listed:
            return found
        page["after_block"] = listed["next"]


def read_event(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of what a subscription has pushed; raise why it was cut off."""
    if "error" in message:
        raise read_error(message["error"])
    event: dict[str, Any] = message["event"]
    return event
