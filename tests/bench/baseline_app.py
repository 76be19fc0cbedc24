"""The smallest Textual app with a text area: what every app figure is held against."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Footer, Static, TextArea


class BaselineApp(App[None]):
    """A line of text, an editor, a footer."""

    def compose(self) -> ComposeResult:
        yield Static("Message, or !command")
        yield TextArea("")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()


if __name__ == "__main__":
    BaselineApp().run()
