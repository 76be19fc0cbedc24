"""The command palette: every action by name, and the themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.theme import BUILTIN_THEMES

from antiphon.bindings import palette_actions

if TYPE_CHECKING:
    from antiphon.screens.document_screen import DocumentScreen


class Entry(NamedTuple):
    """One line of the palette."""

    title: str
    help: str
    run: Callable[[], None]


class Commands(Provider):
    """What can be done on the document screen now."""

    async def discover(self) -> Hits:
        for entry in self._entries():
            yield DiscoveryHit(entry.title, entry.run, help=entry.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.title)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.title), entry.run, help=entry.help)

    def _entries(self) -> Iterator[Entry]:
        from antiphon.screens.document_screen import DocumentScreen

        screen = self.screen
        if not isinstance(screen, DocumentScreen):
            return
        for action in palette_actions(screen.situation):
            help_text = f"{action.help}  {action.shown_keys()}"
            title = action.palette_title(screen.situation)
            yield Entry(title, help_text, self._performing(screen, action.name))
        for name in sorted(self.app.available_themes.keys() - BUILTIN_THEMES.keys()):
            if name != self.app.theme:
                yield Entry(f"Theme {name}", "Change the colours.", self._choosing(name))

    def _performing(self, screen: DocumentScreen, name: str) -> Callable[[], None]:
        return lambda: screen.perform(name)

    def _choosing(self, name: str) -> Callable[[], None]:
        def choose() -> None:
            self.app.theme = name

        return choose
