"""Widgets with actions of the list: when their keys work, and to whom an action is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from textual.widget import Widget

from antiphon.actions import ACTIONS, Owner
from antiphon.keymap import ACTION_NAMED, bindings
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.conversation_controllers import ConversationControllers


class ActionOwner(Widget, ReportsFailedTasks):
    """Widget with actions, of which it or a controller has the methods.

    They change nothing for people who may not write.
    """

    parts: ConversationControllers
    """Set by the screen before the widget is mounted."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Bind the keys of the class, and guard its actions that change what others see.

        Textual takes methods with `on` before they are guarded: no such action has one.
        """
        if "BINDINGS" not in vars(cls):
            cls.BINDINGS = [*bindings(Owner(cls.__name__))]
        super().__init_subclass__(**options)
        for action in ACTIONS:
            name = f"action_{action.name}"
            method = vars(cls).get(name)
            if method is None and action.owner == cls.__name__ and not action.typed:
                method = by_controller(name)
            if method is not None:
                setattr(cls, name, requires_write(method) if action.mutates else method)

    def hint(self, text: str) -> None:
        self.parts.scope.hint(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the keys of an action are its own now."""
        scope, listed = self.parts.scope, ACTION_NAMED.get(action)
        if listed is not None and scope.mode not in listed.modes:
            return False
        if listed is not None and listed.takes and not listed.takes(scope.host.situation):
            return False
        if listed is not None and scope.session.player is not None:
            return listed.enabled(scope.host.situation)
        return super().check_action(action, parameters)


def by_controller(name: str) -> Callable[[ActionOwner], None]:
    """Return an action that a controller does; a coroutine function runs in the background."""

    def action(self: ActionOwner) -> None:
        work = self.parts.actions[name]
        if iscoroutinefunction(work):
            self.run_in_background(work)
        else:
            work()

    return action


def requires_write(action: Callable[[ActionOwner], object]) -> Callable[[ActionOwner], None]:
    """Answer people who may not write with the reason, instead of performing the action."""

    @wraps(action)
    def guarded(self: ActionOwner) -> None:
        refusal = self.parts.source.user.refusal
        if refusal is not None:
            self.hint(refusal)
        else:
            action(self)

    return guarded
