"""The command palette: every action by name, and the themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.theme import BUILTIN_THEMES

from antiphon.keymap import palette_actions

if TYPE_CHECKING:
    from antiphon.screens.document_screen import DocumentScreen


_TITLE_COLUMNS: Final = 48


class PaletteEntry(NamedTuple):
    """One line of the palette."""

    title: str
    keys: str
    run: Callable[[], None]

    def line(self, title: Content) -> Content:
        """The title, as it is to be shown, with the keys behind it."""
        gap = " " * max(2, _TITLE_COLUMNS - len(self.title))
        return Content.assemble(title, gap, (self.keys, "not bold $text-muted"))


class PaletteCommands(Provider):
    """Palette commands that are available on the document screen now."""

    async def discover(self) -> Hits:
        for entry in self._entries():
            yield DiscoveryHit(entry.line(Content(entry.title)), entry.run, text=entry.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries():
            score = matcher.match(entry.title)
            if score > 0:
                shown = entry.line(matcher.highlight(entry.title))
                yield Hit(score, shown, entry.run, text=entry.title)

    def _entries(self) -> Iterator[PaletteEntry]:
        from antiphon.screens.document_screen import DocumentScreen

        screen = self.screen
        if not isinstance(screen, DocumentScreen):
            return
        for action in palette_actions(screen.situation):
            title = action.palette_title(screen.situation)
            yield PaletteEntry(title, action.shown_keys(), self._performing(screen, action.name))
        for context in screen.contexts:
            yield PaletteEntry(f"Context: {context.label}", "", self._opening(screen, context.id))
        for name in sorted(self.app.available_themes.keys() - BUILTIN_THEMES.keys()):
            if name != self.app.theme:
                yield PaletteEntry(f"Theme: {name}", "", self._choosing(name))

    def _performing(self, screen: DocumentScreen, name: str) -> Callable[[], None]:
        return lambda: screen.perform(name)

    def _opening(self, screen: DocumentScreen, context: str) -> Callable[[], None]:
        return lambda: screen.open_context(context)

    def _choosing(self, name: str) -> Callable[[], None]:
        def choose() -> None:
            self.app.theme = name

        return choose
