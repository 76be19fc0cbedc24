"""Screens of Textual: dismissed once, replaced under others, gone, and as rows of text.

Textual takes the next screen away for a second dismissal of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from textual import events
from textual._context import visible_screen_stack
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button, Input

Result = TypeVar("Result")


class DismissOnceMixin(Screen[Result]):
    """Screen that stays dismissed when a second click, sent before it was gone, comes to it."""

    @property
    def is_dismissed(self) -> bool:
        return self not in self.app.screen_stack

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return AwaitComplete() if self.is_dismissed else super().dismiss(result)


class LaidOutPalette(CommandPalette, DismissOnceMixin[None]):
    """Command palette that moves in its list only once that is laid out, and runs one command.

    A sign that is typed first may lead elsewhere.
    """

    def __init__(self, leads: Mapping[str, Callable[[], object]], *, id: str) -> None:
        """`leads` are what signs do in the place of the palette."""
        super().__init__(id=id)
        self._leads = leads

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value in self._leads and not self.is_dismissed:
            event.prevent_default()
            event.stop()
            self.dismiss()
            self._leads[event.value]()

    def dismiss(self, result: None = None) -> AwaitComplete:
        # Whoever takes the palette away, a search would look for its list and end the app.
        self._cancel_gather_commands()
        return super().dismiss(result)

    def _action_command_list(self, action: str) -> None:
        # Textual looks for the row of an entry that has none yet, and the app would end.
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        if not self.is_dismissed:  # by the first click of two
            super()._select_or_command(event)


def is_bound(screen: Screen[Any], key: str) -> bool:
    """Return whether a key does anything now.

    Textual would look at all keys of all widgets for it, which takes as long as all else that is
    done for the key.
    """
    return any(
        screen.app._check_action_state(one.action, owner) is not False  # noqa: SLF001
        for owner, bindings in screen._modal_binding_chain  # noqa: SLF001
        for one in bindings.key_to_bindings.get(key, ())
    )


def move_screens(app: App[None], mode: str, before: Screen[Any] | None) -> None:
    """Let the screen that is shown now take the place of one among those of the mode before.

    Without one it comes in front of all.
    """
    former, shown = app._screen_stacks[mode], app._screen_stack  # noqa: SLF001
    screen = shown[0]
    if before is None:
        shown[:], former[:] = [*former, screen], []
    else:
        shown[:], former[:] = [screen if one is before else one for one in former], [before]
    _tell(app, screen)


def swap_screens(app: App[None], one: Screen[Any], other: Screen[Any]) -> None:
    """Let two screens change their places."""
    stack, front = app._screen_stack, app.screen  # noqa: SLF001
    at, behind = stack.index(one), stack.index(other)
    stack[at], stack[behind] = other, one
    _tell(app, front)


def take_out(app: App[None], screen: Screen[Any], mode: str) -> None:
    """Take a screen out of those that are shown, into a mode with which it can be removed."""
    front = app.screen
    app._screen_stack.remove(screen)  # noqa: SLF001
    app._screen_stacks[mode] = [screen]  # noqa: SLF001
    _tell(app, front)


def _tell(app: App[None], front: Screen[Any]) -> None:
    """Tell the screens if another one is in front than was."""
    for screen in app.screen_stack:
        screen.refresh()  # each keeps the one below it as it drew that, which may be itself by now
    if app.screen is not front:
        front.post_message(events.ScreenSuspend())
        app.screen.post_message(events.ScreenResume())


def hand_on(screen: Screen[Any], event: events.MouseEvent) -> None:
    """Give an event to a screen that is not in front."""
    screen._forward_event(event)  # noqa: SLF001


def remove_watchers(app: App[None], widget: Widget) -> None:
    """Remove what a widget watches of the app: Textual does so only when that changes."""
    for watchers in getattr(app, "__watchers", {}).values():
        watchers[:] = [watcher for watcher in watchers if watcher[0] is not widget]


def forget_first_screen(app: App[None]) -> None:
    """Let the app take the screen that is shown for its default one, not the first for ever."""
    app._compose_screen = None  # noqa: SLF001


def refresh_now(app: App[Any]) -> None:
    """Lay out and draw what the screen would in its next frame."""
    app.screen._on_timer_update()  # noqa: SLF001


def terminal_rows(app: App[Any]) -> list[Strip]:
    """Return the rows that an app shows; the only public way to them is a picture of all."""
    # A dialog that the app has not drawn yet would stand on an empty page.
    visible_screen_stack.set(app._background_screens)  # noqa: SLF001
    return app.screen._compositor.render_strips()  # noqa: SLF001
