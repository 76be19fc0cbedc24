"""Work of a screen in the background, and its failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, WorkerState, WorkType

Result = TypeVar("Result")


class BackgroundTaskMixin(Screen[Result]):
    """Screen that tells the app of failed workers: Textual tells nobody but the screen."""

    @dataclass
    class TaskFailed(Message):
        """A worker of the screen has failed."""

        error: BaseException

    def run_one_of(self, group: str, work: WorkType[None]) -> None:
        """Do this beside everything else, unless one of the group is being done.

        A question that is dropped is answered by the kernel all the same, before later ones.
        """
        if not any(one.node is self and one.group == group for one in self.workers):
            self.run_worker(work, group=group, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.log.error(event.worker.error)
            self.post_message(BackgroundTaskMixin.TaskFailed(event.worker.error))
