"""Screens that are dismissed once: Textual takes the next one away for a second dismissal."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import Screen

Result = TypeVar("Result")


class DismissOnceMixin(Screen[Result]):
    """Screen that stays dismissed when a second click, sent before it was gone, comes to it."""

    @property
    def is_dismissed(self) -> bool:
        return self not in self.app.screen_stack

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return AwaitComplete() if self.is_dismissed else super().dismiss(result)
