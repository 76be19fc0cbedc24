"""Widgets that draw themselves in the app's theme."""

from __future__ import annotations

from textual.widget import Widget

from antiphon.render.cell_theme import CellTheme


class ThemedWidget(Widget):
    """Has the styles of the app's theme, and is redrawn when that is another one."""

    @property
    def cell_theme(self) -> CellTheme:
        return CellTheme.from_theme(self.app.current_theme)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda theme: self.theme_changed())

    def on_unmount(self) -> None:
        # The signal forgets widgets that are gone only when the theme is another one.
        self.app.theme_changed_signal.unsubscribe(self)

    def theme_changed(self) -> None:
        """Draw in the theme that the app has now."""
        self.refresh()
