"""Work of screens and widgets in the background, and its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from textual.dom import DOMNode
from textual.message import Message
from textual.worker import Worker, WorkerState, WorkType

LOOK_SECONDS: Final = 0.01
"""Between two looks whether what is waited for has happened."""


async def wait_until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until a condition holds, but not for longer than some seconds."""
    for _ in range(round(seconds / LOOK_SECONDS)):
        if condition():
            return
        await asyncio.sleep(LOOK_SECONDS)


class ReportsFailedTasks(DOMNode):
    """Screen or widget that tells the app of its failed workers: Textual tells nobody else."""

    @dataclass
    class TaskFailed(Message):
        """A worker has failed."""

        error: BaseException

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.post_message(ReportsFailedTasks.TaskFailed(event.worker.error))

    def run_in_background(self, work: WorkType[Any]) -> None:
        """Do this beside everything else; of a function Python does not warn if it is dropped."""
        self.run_worker(work, exit_on_error=False)

    def run_one_of(self, group: str, work: WorkType[None]) -> None:
        """Do this beside everything else, unless one of the group is being done.

        A question that is dropped is answered by the kernel all the same, before later ones.
        """
        same = (one for one in self.workers if one.node is self and one.group == group)
        if all(one.is_finished for one in same):
            self.run_worker(work, group=group, exit_on_error=False)

    def run_last_of(self, group: str, work: WorkType[None]) -> None:
        """Do this beside everything else; of a group only the last one goes on."""
        self.run_worker(work, group=group, exclusive=True, exit_on_error=False)
