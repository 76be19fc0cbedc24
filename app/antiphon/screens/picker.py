"""A list of choices over the document, with a line in which they are looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from antiphon.render.display import displayable_in_a_row
from antiphon.screens.modals import HintingModal

TYPING_PAUSE_SECONDS: Final = 0.15
"""How long after a key it is looked for what was typed."""

LONGEST_SEARCH: Final = 1_000

NOTHING_FOUND: Final = "Nothing is found."


class PickerEntry(NamedTuple):
    """One line of the list, and a dim one below it."""

    id: str
    line: str
    detail: str = ""

    @property
    def shown(self) -> Content:
        line = Content(displayable_in_a_row(self.line))
        if not self.detail:
            return line
        detail = (displayable_in_a_row(self.detail), "not bold $text-muted")
        return Content.assemble(line, "\n", ("  ", ""), detail)


Ask = Callable[[str], Awaitable[Sequence[PickerEntry]]]
"""Answers the choices for what has been typed."""


class PickerModal(HintingModal[str | None]):
    """Returns the id of the choice; Esc chooses nothing."""

    DEFAULT_CSS = """
    PickerModal { align-horizontal: center; }
    PickerModal > Vertical {
        margin-top: 2; width: 80; max-width: 100%; height: auto; max-height: 80vh;
        background: $surface;
    }
    PickerModal Input, PickerModal Input:focus {
        border: none; padding: 0 1; margin: 1 0; height: 1;
    }
    PickerModal OptionList, PickerModal OptionList:focus {
        border: none; padding: 0 1 1 1; min-width: 3; max-height: 70vh; background: $surface;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("enter", "choose", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        ask: Ask,
        *,
        empty: str | None = None,
        nothing: str = NOTHING_FOUND,
        pause: float = TYPING_PAUSE_SECONDS,
    ) -> None:
        """`nothing` stands in the place of the list when there is none.

        `empty` does while nothing is typed. `pause` is how long after a key the list is made anew.
        """
        super().__init__()
        self._ask = ask
        self._pause = pause
        self._nothing = nothing
        self._empty = self._said = nothing if empty is None else empty
        self._input = Input(placeholder=title, max_length=LONGEST_SEARCH, compact=True)
        self._input.cursor_blink = False
        self._list = OptionList(markup=False)
        self._listed: str | None = None
        self._is_chosen = False
        self._list.can_focus = False
        self.shown = (Vertical(self._input, self._list),)

    @property
    def typed(self) -> str:
        """Return what is looked for."""
        return self._input.value

    def on_mount(self) -> None:
        self._input.focus()
        self._look_for("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._look_for(event.value)

    def _look_for(self, typed: str) -> None:
        self.run_last_of("choices", partial(self._fill, typed))

    async def _fill(self, typed: str) -> None:
        if typed:
            await asyncio.sleep(self._pause)
        try:
            choices = await self._ask(typed)
        finally:
            self._listed = typed
        self._list.clear_options()
        self._list.add_options([Option(one.shown, one.id) for one in choices])
        if choices:
            self._list.highlighted = 0
        else:
            self._said = self._nothing if typed.strip() else self._empty
            self._list.add_option(Option(Content(self._said), disabled=True))
        if self._is_chosen:
            self._is_chosen = False
            self.action_choose()

    def action_move(self, step: int) -> None:
        before = self._list.highlighted
        if step > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()
        if self._list.highlighted == before:
            self.hint(self._said if before is None else "There is no other choice.")

    def action_choose(self) -> None:
        if self._listed != self.typed:  # what is meant is the first of what was typed
            self._is_chosen = True
            return
        if self._list.highlighted is None:
            self.hint(self._said)
        self._list.action_select()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


async def choose(app: App[Any], title: str, choices: Sequence[PickerEntry]) -> str | None:
    """Let the person choose one of some entries, in a worker; None if they choose none."""

    async def ask(typed: str) -> Sequence[PickerEntry]:
        wanted = typed.casefold()
        return [one for one in choices if wanted in f"{one.line} {one.detail}".casefold()]

    return await app.push_screen_wait(PickerModal(title, ask))
