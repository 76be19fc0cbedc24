"""Failures of what a screen does in the background."""

from __future__ import annotations

from typing import TypeVar

from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, WorkerState

Result = TypeVar("Result")


class BackgroundTaskMixin(Screen[Result]):
    """Screen that reports its failed workers to the app: Textual tells nobody but the screen."""

    class TaskFailed(Message):
        """A worker of the screen has failed."""

        def __init__(self, error: BaseException) -> None:
            super().__init__()
            self.error = error

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.log.error(event.worker.error)
            self.post_message(BackgroundTaskMixin.TaskFailed(event.worker.error))
