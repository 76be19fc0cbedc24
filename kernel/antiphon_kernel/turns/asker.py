"""The askers of turns and commands, and the end of what is done for them when they have to go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.storage import Dismissal
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.yjs.close_codes import CloseCode

T = TypeVar("T")

_STANDING: Final = {
    CloseCode.KICKED: "who has been kicked",
    CloseCode.REVOKED: "whose invitation has been revoked",
    CloseCode.UNAUTHORISED: "whose invitation has expired",
}


class AskerDismissed(Exception):
    """The asker may not have this done, or not any more."""

    def __init__(self, asker: str, *, has_begun: bool) -> None:
        """`asker` says who it is, and why not."""
        super().__init__(asker)
        self.asker = asker
        self.has_begun = has_begun

    def command_refusal(self, what: str) -> str:
        """Return why a command does not run, for people and models; `what` says for what."""
        return (
            f"{'Ended' if self.has_begun else 'Not run'}: {what} of {self.asker}, and only the"
            " owner of the kernel has commands run on its host: ask the owner to run it."
        )


class Asker:
    """The principal whose message or call began a job, by the credential they came with.

    Stays known, and is dismissed with its connections, until it is closed.
    """

    def __init__(self, kernel: Kernel, actor: Actor, needs: Permission) -> None:
        """`needs` is the right without which nothing of the job is done."""
        self.session = kernel.open_work_session(actor, needs)
        self._kernel = kernel

    def close(self) -> None:
        """The job is over."""
        self._kernel.sessions.close(self.session.session)

    @property
    def is_dismissed(self) -> bool:
        """Return whether they have had to go since."""
        return self._kernel.sessions.dismissal(self.session) is not None

    def standing(self) -> str:
        """Return who it is, and why they have to go if they have."""
        name = self.session.principal.username
        dismissal = self._kernel.sessions.dismissal(self.session)
        role = self._kernel.members.role_of(self.session.principal).described()
        return f"{name}, {_STANDING.get(dismissal.code, role) if dismissal is not None else role}"

    async def run(self, needs: Permission, work: Callable[[], Awaitable[T]]) -> T:
        """Do a part of the job that needs a right.

        Raises:
            AskerDismissed: if the asker does not have the right, or has it no longer; `work` has
                been cancelled then.
        """
        sessions = self._kernel.sessions
        part = Asker(self._kernel, self.session, needs)
        try:
            if part.is_dismissed:
                raise AskerDismissed(part.standing(), has_begun=False)
            task = asyncio.ensure_future(work())

            def cancel(dismissal: Dismissal) -> None:
                task.cancel()

            sessions.on_dismissal(part.session, cancel)
            try:
                return await task
            except asyncio.CancelledError:
                this = asyncio.current_task()
                cancelled = this is not None and this.cancelling()
                if cancelled or not part.is_dismissed:
                    raise
                raise AskerDismissed(part.standing(), has_begun=True) from None
        finally:
            part.close()
