"""A form that a server asks people to fill in: a row for each field."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Label, Select

from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.screens.modals import HintingModal
from antiphon.widgets.status import KeyLines

_LONGEST_ANSWER = 10_000


class FormModal(HintingModal[bool]):
    """The fields of a question; Esc leaves it open."""

    DEFAULT_CSS = """
    FormModal Label { margin: 1 1 0 1; width: 1fr; }
    FormModal Input { height: 1; border: none; margin: 0 1; }
    FormModal Select { margin: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", show=False, priority=True),
        Binding("escape,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(
        self,
        asked: Mapping[str, Any],
        answer: Callable[[Mapping[str, Any]], Awaitable[bool]],
    ) -> None:
        """`answer` sends what is in the fields, and returns whether that was taken."""
        super().__init__()
        self._answer = answer
        self._fields = {str(one["name"]): (one, _input(one)) for one in asked["fields"]}
        said = sanitize_for_display(f"{asked['server']} asks: {asked['message']}")
        rows: list[Widget] = [Label(said, markup=False)]
        for field, widget in self._fields.values():
            rows += [Label(_title(field), markup=False), widget]
        keys = (("Ctrl+S", "send"), ("Tab", "next field"), ("Esc", "later"))
        self.shown = (VerticalScroll(*rows, can_focus=False), KeyLines(keys))

    def on_input_submitted(self) -> None:
        self.focus_next()

    @work(exclusive=True, exit_on_error=False)
    async def action_send(self) -> None:
        found = {name: _value(*one) for name, one in self._fields.items()}
        # The kernel says what is missing or wrong.
        if await self._answer({name: one for name, one in found.items() if one is not None}):
            self.dismiss(True)


def _title(field: Mapping[str, Any]) -> str:
    words = [str(field["title"]) + ("" if field.get("required") else " (if you like)")]
    if "description" in field:
        words.append(str(field["description"]))
    if field["type"] == "array":
        words.append(f"any of {', '.join(value for value, _ in field.get('options', ()))}")
    return displayable_in_a_row(" · ".join(words))


def _input(field: Mapping[str, Any]) -> Widget:
    """Return what a field is filled in with."""
    default, options = field.get("default"), field.get("options", ())
    if field["type"] == "boolean":
        options = [(True, "yes"), (False, "no")]
    if options and field["type"] != "array":
        choices = [(displayable_in_a_row(title or value), value) for value, title in options]
        chosen = default if default in [value for _, value in choices] else Select.NULL
        return Select(choices, value=chosen, prompt="(nothing)", compact=True)
    text = ", ".join(map(str, default)) if isinstance(default, list) else str(default or "")
    found = Input(text, max_length=_LONGEST_ANSWER, compact=True)
    found.cursor_blink = False
    return found


def _value(field: Mapping[str, Any], widget: Widget) -> object:
    """Return what stands in a field, in the type that it is to have; None if it is empty."""
    if isinstance(widget, Select):
        return None if widget.value is Select.NULL else widget.value
    text = widget.value.strip() if isinstance(widget, Input) else ""
    if field["type"] == "array":
        return [one.strip() for one in text.split(",") if one.strip()] or None
    if field["type"] in ("integer", "number") and text:
        try:
            return int(text) if field["type"] == "integer" else float(text)
        except ValueError:
            return text
    return text or None
