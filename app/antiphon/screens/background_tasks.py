"""A screen whose work in the background never fails in silence."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from textual.screen import Screen
from textual.worker import Worker, WorkerState


class BackgroundTaskScreen(Screen[None]):
    """A subclass says what a failure is told with."""

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence; no other takes the place of a weighty one."""
        raise NotImplementedError

    def run_in_background(self, work: Coroutine[Any, Any, None], group: str | None = None) -> None:
        """Do this beside everything else; of a group only the last one goes on."""
        self.run_worker(
            work, group=group or "default", exclusive=group is not None, exit_on_error=False
        )

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Tell a failure."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.log.error(event.worker.error)
            self.hint(f"Something went wrong: {event.worker.error!r}")
