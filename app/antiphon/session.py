"""The app's connection to its kernel: one replica, one line for calls.

An app that shows a replay has no kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from antiphon.local_user import REPLAY, SHUT_OUT, LocalUser
from antiphon.locations import project_of_data, state_folder
from antiphon.options import AppOptions
from antiphon_kernel.client.discovery import project_of
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.rejected_edits import (
    Rejection,
    claim_untold,
    format_message,
    write_report,
)
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.errors import AntiphonError, no_kernel, storage_failed
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.signal import Signal
from antiphon_kernel.yjs.close_codes import CloseCode

if TYPE_CHECKING:
    from antiphon.replay.player import Player

START_POLL: Final = 0.01
"""Seconds between two looks whether the kernel has come up."""

RESTART_AFTER: Final = 0.3
"""Seconds without a connection before the kernel is started again; shorter ones are blinks."""

SILENT_SECONDS: Final = 2.0
"""How long the kernel may leave an edit unanswered before that is said."""

RECENT_BLOCKS: Final = 2_000
"""Blocks of a long context that are here at first; the others come when they are looked at."""


class ConnectionStatus(StrEnum):
    """Status of the app's connection to the kernel, in the words of the header line."""

    CONNECTING = "connecting"
    CATCHING_UP = "catching up"
    LIVE = "live"
    OFFLINE = "offline"
    RESTARTING = "starting the kernel"
    REFUSED = "refused"
    KICKED = "kicked"
    REPLAY = "replay"
    """There is none."""


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """The connection, with what a person should know about it."""

    connection: ConnectionStatus
    reason: str | None = None
    """Why the kernel refused this app, fails, or could not be started again."""
    unsaved: int = 0
    """Changes made here that are not on the kernel's disk."""
    role: str | None = None
    """The role of the person here, as the kernel said it last."""
    is_silent: bool = False
    """The connection is there, but the kernel does not answer."""
    refused: Rejection | None = None
    """Edits made here that the kernel would not have, and where they were written down."""

    @property
    def is_rejected(self) -> bool:
        """The kernel will not have this app again; nothing written now would reach anybody."""
        return self.connection in (ConnectionStatus.REFUSED, ConnectionStatus.KICKED)


class Session:
    """One context of one kernel, as long as the app is open."""

    player: Player | None = None
    """A replay that is shown in the place of a context of a kernel."""

    def __init__(self, options: AppOptions) -> None:
        self.options = options
        self._write_down = write_report(state_folder() / "refused")
        self._left_behind: Rejection | None = None
        self.replica = Replica(
            options.locate,
            options.context or DEFAULT_CONTEXT,
            as_name=options.as_name,
            keep=self._write_down,
            recent=RECENT_BLOCKS,
        )
        self._calls = ToolClient(options.locate, as_name=options.as_name)
        self._finding: asyncio.Task[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._restart = options.restart
        self._is_closing = False
        self.start_failure: AntiphonError | None = None
        """The reason why the kernel that was started for this app does not come up."""
        self._failure: str | None = None
        self._was_live = False
        self._answer_timer: asyncio.TimerHandle | None = None
        """Runs while edits wait to be acknowledged."""
        self._is_late = False
        """Edits have been unanswered for SILENT_SECONDS."""
        self.project = options.project or project_of(options.data, project_of_data(options.data))
        """Folder of the files that a message may name."""
        self.changed = Signal[()]()
        """`status` may be another one."""
        self.user = LocalUser(lambda: SHUT_OUT if self.status.is_rejected else None)
        self.replica.state_changed.listen(self._state_changed)

    @property
    def document(self) -> Document:
        return self.replica.document

    @property
    def me(self) -> PresenceState | None:
        """The person here as the kernel knows them; None until the first connection."""
        return self.replica.awareness.me

    @property
    def is_live(self) -> bool:
        return self.status.connection is ConnectionStatus.LIVE

    @property
    def status(self) -> SessionStatus:
        state = self.replica.state
        reason = self._failure
        if state is ReplicaState.REFUSED:
            is_other = self.replica.rejection_code == CloseCode.OTHER_EPOCH
            anew = "This document was restored, or made anew: <key:palette>, Join again shows it."
            reason = anew if is_other else self.replica.rejection
        if reason is None and not self._was_live:
            reason = self.replica.last_error
        reason = reason or self.replica.kernel_error
        connection = ConnectionStatus[state.name]
        if state is ReplicaState.REFUSED and self.replica.rejection_code == CloseCode.KICKED:
            connection = ConnectionStatus.KICKED
        is_down = connection is not ConnectionStatus.LIVE and self.replica.kernel_error is None
        if self._restarting is not None and is_down:
            connection = ConnectionStatus.RESTARTING
        role = self.me.role if self.me is not None else None
        return SessionStatus(
            connection,
            reason,
            self.replica.outbox.unsaved,
            str(role) if role else None,
            state is ReplicaState.LIVE and (self.replica.is_silent or self._is_late),
            self.replica.rejected_edits or self._left_behind,
        )

    def presence(self) -> Mapping[int, PresenceState]:
        """Everyone else in the context, by awareness client id."""
        return self.replica.awareness.others

    def start(self, around: str | None = None) -> None:
        """Connect, and stay connected until `close`; `around` is a block that has to be here."""
        self._running = asyncio.create_task(self._run(around), name="replica")
        self._running.add_done_callback(self._ended)

    async def _run(self, around: str | None) -> None:
        has_kernel = self.options.has_kernel or (lambda: True)
        try:
            while not self._is_closing and not has_kernel():  # noqa: ASYNC110  another process
                await asyncio.sleep(START_POLL)
        except AntiphonError as error:
            self.start_failure = error
            self.changed.notify()
            return
        if around is not None:
            self._finding = asyncio.create_task(self._find(around), name="place in the context")
            await asyncio.wait({self._finding})
        await self.replica.run()

    async def _find(self, block: str) -> None:
        """Let the replica hold a block, and those before it that are seen with it."""
        place = {"context": self.options.context or DEFAULT_CONTEXT, "around": block}
        with suppress(AntiphonError):  # the replica hears the reason
            page = await self._calls.call("context.page", place)
            await self.replica.read_earlier(page["count"] - page["before"] + RECENT_BLOCKS // 2)

    def find_left_behind(self) -> None:
        """Show as refused what an earlier session wrote down when nobody could be told of it."""
        file = claim_untold(state_folder() / "refused")
        if file is not None:
            self._left_behind = Rejection("The app ended before you had seen this.", 0, file)
            self.changed.notify()

    async def leave(self, unheard: str) -> Path | None:
        """Close it, and return the file with what the kernel has not confirmed, if there is any.

        Args:
            unheard: a message that could not be shared, which is written into the file.

        Raises:
            AntiphonError: `storage_failed` if that cannot be.
        """
        try:
            kept = self._write_down(format_message(unheard)) if unheard else None
        except OSError as error:
            raise storage_failed(f"What you were writing cannot be kept: {error}") from error
        finally:
            await self.close()
        refused = self.replica.rejected_edits
        return kept if refused is None else refused.file

    async def close(self) -> None:
        """Send what is still to be sent and let go; nothing is lost that the kernel has."""
        self._restart = None
        self._is_closing = True
        if self._restarting is not None:
            self._restarting.cancel()
        if self._finding is not None:
            self._finding.cancel()
        self._await_acknowledgement(is_due=False)
        try:
            await self.replica.close()
        finally:
            await self._calls.close()
            if self._running is not None:
                await asyncio.wait([self._running])
            self.document.close()  # else the CRDT keeps it in memory

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One tool call, made after everything written here so far has reached the kernel.

        Raises:
            AntiphonError: what the tool failed with; `no_kernel` at once while there is no
                connection.
        """
        if not self.is_live:
            raise no_kernel("There is no connection to the kernel at the moment.")
        await self.replica.saved()
        if tool == "drift.distill":
            # It waits for a model. Calls of a connection wait for each other: none could stop it.
            async with self._calls.another() as calls:
                return await calls.call(tool, params)
        return await self._calls.call(tool, params)

    def _note_late(self) -> None:
        self._is_late = True
        self.changed.notify()

    def _state_changed(self) -> None:
        state = self.replica.state
        # Called when the first edit is made, and with each acknowledgement.
        self._is_late = False
        self._await_acknowledgement(
            is_due=state is ReplicaState.LIVE and self.replica.outbox.unsaved > 0
        )
        if state is ReplicaState.LIVE:
            self._was_live = True
            self._failure = None
        if state is ReplicaState.OFFLINE and self._restart is not None and self._was_live:
            if self._restarting is None:
                self._restarting = asyncio.create_task(self._start_again(self._restart))
        self.changed.notify()

    def _await_acknowledgement(self, *, is_due: bool) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None
        if is_due:
            loop = asyncio.get_running_loop()
            self._answer_timer = loop.call_later(SILENT_SECONDS, self._note_late)

    async def _start_again(self, restart: Callable[[], None]) -> None:
        try:
            await asyncio.sleep(RESTART_AFTER)
            if self.replica.state is ReplicaState.OFFLINE:
                await asyncio.to_thread(restart)
        except AntiphonError as error:
            self._restart = None
            self._failure = str(error)
        finally:
            self._restarting = None
            self.changed.notify()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = f"{type(error).__name__}: {error}"
        self.changed.notify()


class ReplaySession(Session):
    """A replay in the place of a context of a kernel, for somebody who reads."""

    player: Player

    def __init__(self, options: AppOptions) -> None:
        from antiphon.replay.player import Player

        super().__init__(options)
        assert options.replay is not None
        self.player = Player(options.replay)
        self.user = LocalUser(lambda: REPLAY)
        self.replica.begin_with(self.player.document)
        self.replica.stop_following()  # nothing is written here that somebody waits for

    @property
    def status(self) -> SessionStatus:
        return SessionStatus(ConnectionStatus.REPLAY, self._failure)

    def presence(self) -> Mapping[int, PresenceState]:
        return self.player.presence()

    def start(self, around: str | None = None) -> None:
        """Play, and go on until `close`."""
        self._running = asyncio.create_task(self.player.run(), name="replay")
        self._running.add_done_callback(self._ended)
        if self.options.speed is not None:
            self.player.set_speed(self.options.speed)
            self.player.play()

    def find_left_behind(self) -> None:
        """Leave it to a session of a kernel."""

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse it."""
        raise no_kernel(REPLAY.words)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        await super().close()


class Hint(Protocol):
    """Says one sentence to the person; no hint takes the place of a weighty one."""

    def __call__(self, text: str, *, weighty: bool = False) -> None: ...


class KernelCalls:
    """Calls whose failure is a hint, never an exception."""

    def __init__(self, session: Session, hint: Hint) -> None:
        self.session = session
        self.hint = hint

    async def call(
        self, tool: str, params: Mapping[str, Any], failed: str = ""
    ) -> Mapping[str, Any] | None:
        """Return the answer of a tool; None, with a hint that begins with `failed`, if it fails."""
        try:
            return await self.session.call(tool, params)
        except AntiphonError as error:
            self.hint(f"{failed}: {error.message}" if failed else error.message)
            return None
