"""Widgets that draw themselves in the app's theme."""

from __future__ import annotations

from typing import ClassVar

from textual.theme import Theme
from textual.widget import Widget

from antiphon.render.cell_theme import CellTheme


class ThemedWidget(Widget):
    """Has the styles of the app's theme, and is redrawn when that is another one."""

    _built: ClassVar[dict[str, tuple[Theme, CellTheme]]] = {}
    """Styles by the name of the theme that they were made from."""

    @property
    def cell_theme(self) -> CellTheme:
        theme = self.app.current_theme
        known = self._built.get(theme.name)
        # Each app of a process has objects of its own for the same themes.
        if known is None or (known[0] is not theme and known[0] != theme):
            known = self._built[theme.name] = (theme, CellTheme.from_theme(theme))
        return known[1]

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda theme: self.theme_changed())

    def on_unmount(self) -> None:
        # The signal forgets widgets that are gone only when the theme is another one.
        self.app.theme_changed_signal.unsubscribe(self)

    def theme_changed(self) -> None:
        """Draw in the theme that the app has now."""
        self.refresh()
