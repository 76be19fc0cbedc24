"""The command palette: every action by name, contexts, models and themes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.theme import BUILTIN_THEMES

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.conversation_screen import ConversationScreen

_TITLE_COLUMNS: Final = 48


class PaletteEntry(NamedTuple):
    """One line of the palette."""

    title: str
    keys: str
    run: Callable[[], object]

    def line(self, title: Content) -> Content:
        """The title, as it is to be shown, with the keys behind it."""
        gap = " " * max(2, _TITLE_COLUMNS - len(self.title))
        return Content.assemble(title, gap, (self.keys, "not bold $text-muted"))


class PaletteCommands(Provider):
    """Palette commands that are available on the document screen now."""

    _asked: asyncio.Task[None] | None = None
    """Request to the kernel for its contexts."""

    async def startup(self) -> None:
        if isinstance(self.screen, ConversationScreen):
            self._asked = asyncio.create_task(self.screen.contexts.refresh(), name="palette")

    async def discover(self) -> Hits:
        for entry in await self._entries():
            yield DiscoveryHit(entry.line(Content(entry.title)), entry.run, text=entry.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in await self._entries():
            score = matcher.match(entry.title)
            if score > 0:
                shown = entry.line(matcher.highlight(entry.title))
                yield Hit(score, shown, entry.run, text=entry.title)

    async def _entries(self) -> Iterator[PaletteEntry]:
        """Return all entries, once the kernel has answered or taken too long."""
        if self._asked is not None:
            # Textual cancels a search when more is typed; the request goes on for the next one.
            await asyncio.wait({self._asked})
        screen = self.screen
        return self._of(screen) if isinstance(screen, ConversationScreen) else iter(())

    def _of(self, screen: ConversationScreen) -> Iterator[PaletteEntry]:
        def run(method: str, *args: object) -> Callable[[], object]:
            return lambda: getattr(screen.shown_now, method)(*args)

        situation = screen.situation
        for action in screen.keymap.palette_actions(situation):
            title = situation.fill(action.title)
            yield PaletteEntry(title, action.shown_keys(), run("call_action", action.name))
        doing = {one.principal: one.doing for one in screen.people.participants()}
        for one in screen.following.others():
            name = displayable_in_a_row(one.username)
            words = doing.get(one.principal, "")
            yield PaletteEntry(f"Follow {name}", words, run("follow", one.principal))
        for context in screen.contexts.others:
            unread = f"●{context.unread}" if context.unread else ""
            show = run("open_context", context.id)
            yield PaletteEntry(f"Context: {context.label}", unread, show)
        for name in screen.models.here.names:
            if name != screen.models.here.default:
                choose = run("choose_model", name)
                yield PaletteEntry(f"Model: {name} answers here", "", choose)
        for agent in screen.models.agents:
            for title, params in agent.choices.items():
                yield PaletteEntry(title, "", run("set_agent", params))
        for name in sorted(self.app.available_themes.keys() - BUILTIN_THEMES.keys()):
            yield PaletteEntry(f"Theme: {name}", "", run("choose_theme", name))
