"""A document to look at, and an app that shows it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES

from antiphon.render.cell_theme import CellTheme
from antiphon.textual_patches.screens import terminal_rows
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import BlockHeader, Member
from tests.clocks import ManualClock

_Kind = TypeVar("_Kind")

CONTEXT = ContextId("a" * 32)
AMY = "1" * 32
ARIA = "2" * 32
BEN = "3" * 32
THEME = CellTheme.from_theme(BUILTIN_THEMES["textual-dark"])

ANSWER = """\
# Answer {0}

I would start with the *journal*, because everything rests on it, and go on from there.

- one
- two
- three

```python
def f(x):
    return x
```
"""


class Sample:
    """A document that is written from two sides: here, and in `peer`, whose updates come over."""

    def __init__(self) -> None:
        self.peer = Document.create(77, context=CONTEXT, epoch="b" * 32, label="default")
        with self.peer.transaction(None):
            self.peer.set_member(Member(AMY, "amy", PrincipalKind.HUMAN, 0))
            self.peer.set_member(Member(ARIA, "aria", PrincipalKind.MODEL, 3))
            self.peer.set_member(Member(BEN, "ben", PrincipalKind.HUMAN, 5))
        self._count = 0
        self._last_key: str | None = None
        self.here = Document(78)
        self.sync()
        self.peer.watch_updates(self._carry)
        self._connected = True

    def _carry(self, update: bytes, origin: object) -> None:
        if self._connected and origin != REMOTE:
            self.here.apply_update(update)

    def sync(self) -> None:
        self.here.apply_update(self.peer.update_since(self.here.state_vector()))
        self.peer.apply_update(self.here.update_since(self.peer.state_vector()))

    def add(
        self,
        text: str = "",
        *,
        author: str = ARIA,
        kind: BlockKind = BlockKind.TEXT,
        status: Status = Status.DONE,
        role: Role | None = None,
        before: str | None = None,
        **fields: Any,
    ) -> str:
        """A block at the end (or before another), written by the other side.

        Args:
            role: that of the author unless it is given.
        """
        self._count += 1
        if before is None:
            order = self._last_key = key_between(self._last_key, None)
        else:
            ids = list(self.peer.block_ids())
            at = ids.index(before)
            low = self.peer.header(ids[at - 1]).order if at else None
            order = key_between(low, self.peer.header(before).order)
        block = f"{CONTEXT}.{author}.{self._count}"
        role = role or (Role.MODEL if author == ARIA else Role.USER)
        header = BlockHeader(
            block, kind, role, status, order, "2026-01-01T00:00:00.000Z", author, **fields
        )
        self.peer.create_block(header, text)
        return block

    def add_turns(self, count: int) -> list[str]:
        """Questions, thinking and answers."""
        blocks = []
        self._connected = False
        with self.peer.transaction(None):
            for turn in range(count):
                blocks += [
                    self.add(f"What is {turn}?", author=AMY),
                    self.add("hm\n" * 9, kind=BlockKind.THINKING),
                    self.add(ANSWER.format(turn)),
                ]
        self._connected = True
        self.sync()
        return blocks


class SampleApp(App[None]):
    """A cell area and nothing else; without a `clock`, no time passes for it."""

    def __init__(self, sample: Sample, clock: Clock | None = None) -> None:
        super().__init__()
        self.sample = sample
        self.present: dict[int, PresenceState] = {}
        self.source = CellModel(
            sample.here, me=AMY, presence=lambda: self.present, clock=clock or ManualClock()
        )
        self.area = DocumentView(self.source)
        self.cells = self.area.cells

    def compose(self) -> ComposeResult:
        yield self.area

    def set_present(self, client: int, state: PresenceState | None) -> None:
        """Somebody comes, moves or (None) goes."""
        if state is None:
            self.present.pop(client, None)
        else:
            self.present[client] = state
        self.source.presence_changed()

    def screen_text(self) -> list[str]:
        """The rows of the terminal, without the scroll bar."""
        width = self.size.width - 1
        return [row.crop(0, width).text.rstrip() for row in terminal_rows(self)]

    def row_with(self, text: str) -> int:
        rows = [row for row, shown in enumerate(self.screen_text()) if text in shown]
        assert len(rows) == 1, (text, self.screen_text())
        return rows[0]


@contextlib.asynccontextmanager
async def on_screen(
    sample: Sample,
    *,
    size: tuple[int, int] = (80, 24),
    heard: Heard | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[SampleApp, Pilot[None]]]:
    app = SampleApp(sample, clock)
    async with app.run_test(size=size, message_hook=heard) as pilot:
        yield app, pilot


class Heard:
    """A message hook: every message of the app once, also those that bubble."""

    def __init__(self) -> None:
        self._messages: list[object] = []

    def __call__(self, message: object) -> None:
        if not any(message is one for one in self._messages):
            self._messages.append(message)

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        return [message for message in self._messages if isinstance(message, kind)]


def aria_writing(block: str, offset: int) -> PresenceState:
    return PresenceState(
        ARIA, "aria", PrincipalKind.MODEL, 3, "s", block, offset, None, "streaming"
    )


def ben_at(block: str, offset: int, anchor: int | None = None) -> PresenceState:
    return PresenceState(BEN, "ben", PrincipalKind.HUMAN, 5, "t", block, offset, anchor, "typing")
