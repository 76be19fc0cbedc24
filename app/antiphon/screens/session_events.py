"""Kernel events and their handling by the screen: connection, role, people, cells."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from time import monotonic
from typing import Final

from antiphon.running_blocks import RunningBlocks
from antiphon.screens.header_presenter import HeaderPresenter
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.local_user import LocalUser
from antiphon.screens.rejected_page import rejected_location
from antiphon.screens.submitter import MessageSubmitter
from antiphon.screens.tour_observer import TourObserver
from antiphon.screens.ui_state import UIState
from antiphon.screens.view_restore import ViewRestore
from antiphon.session import ConnectionStatus, Session, SessionStatus
from antiphon.widgets.block_list import CellChange, CellModel

NOTICED_SECONDS: Final = 1.0
"""A connection that is lost for less than this was not missed."""


@dataclass(frozen=True, slots=True)
class SessionEventTargets:
    """Objects on the screen that kernel events change."""

    frame: DocumentLayout
    source: CellModel
    work: RunningBlocks
    sending: MessageSubmitter
    surroundings: HeaderPresenter
    outlook: UIState
    guide: TourObserver
    bookmark: ViewRestore


@dataclass(frozen=True, slots=True)
class SessionEventHandlers:
    """Callbacks of the screen for session events."""

    hint: Callable[[str], None]
    must_hear: Callable[[str], None]
    """A hint that no other takes the place of."""
    update: Callable[[], None]
    """Other keys may work now."""
    suggest: Callable[[], None]
    """The tour may have something else to say."""
    read_along: Callable[[], None]
    """The person may not write: away from where messages are written."""
    run: Callable[[Coroutine[None, None, None], str | None], None]
    """Work in the background; only the last of a group goes on."""


class SessionEvents:
    """Listens from `start` to `stop`."""

    def __init__(
        self, session: Session, parts: SessionEventTargets, reactions: SessionEventHandlers
    ) -> None:
        self._session = session
        self._parts = parts
        self._do = reactions
        self._stood = session.status
        self._arrivals = session.arrivals(reactions.hint)
        self.identity = LocalUser(
            session,
            parts.frame.area,
            parts.frame.composer,
            parts.outlook,
            role_changed=self._role_changed,
            draft_identified=self._draft_identified,
        )
        self._away_since: float | None = None
        self._stops: tuple[Callable[[], None], ...] = ()

    def start(self) -> None:
        """Listen, and take in what has been said already."""
        parts = self._parts
        parts.source.watch(self._cells_changed)
        parts.work.watch(self._do.update)
        self._stops = (
            self._session.watch(self._connection_changed),
            self._session.replica.watch_presence(self._presence_changed),
        )
        parts.surroundings.update_participants()
        if self._stood.connection is ConnectionStatus.LIVE:
            self._came_live()

    def stop(self) -> None:
        """Listen to the session no more."""
        for stop in self._stops:
            stop()
        self._stops = ()

    def list_contexts(self) -> None:
        """Ask the kernel which contexts there are, if it can be asked."""
        if self._session.is_live:
            self._do.run(self._parts.surroundings.list_contexts(), "contexts")

    def _connection_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        standing = self._session.status
        self._parts.surroundings.update_participants()
        if standing == self._stood:
            return
        self._check_caught_up(standing)
        before, self._stood = self._stood, standing
        if (
            standing.connection is ConnectionStatus.LIVE
            and before.connection is not ConnectionStatus.LIVE
        ):
            self._came_live()
        self.identity.is_denied()
        if standing.reason is not None and standing.reason != before.reason:
            tell = self._do.must_hear if standing.is_rejected else self._do.hint
            tell(standing.reason)
        if standing.is_rejected and standing.refused is not None:
            if before.refused is not standing.refused or not before.is_rejected:
                self._do.must_hear(rejected_location(standing.refused))
        self._do.update()

    def _check_caught_up(self, standing: SessionStatus) -> None:
        """Say so when all that was written without a connection has arrived."""
        is_live = standing.connection is ConnectionStatus.LIVE
        if self._stood.connection is ConnectionStatus.LIVE and not is_live:
            self._away_since = monotonic()
        elif self._away_since is not None and is_live and not standing.unsaved:
            away, self._away_since = monotonic() - self._away_since, None
            if away >= NOTICED_SECONDS:
                self._do.hint("Caught up: what was written here and elsewhere is together again.")

    def _came_live(self) -> None:
        self.identity.is_known()
        self._watch_joins()
        self._flush_pending()
        self.list_contexts()
        self._parts.bookmark.go_back()

    def _watch_joins(self) -> None:
        """The owner is told who joins."""
        if self.identity.is_owner and self._session.is_live:
            self._do.run(self._arrivals.run(), "arrivals")

    def _role_changed(self, told: str | None) -> None:
        if self.identity.refusal is not None:
            self._do.read_along()
        if told is not None:
            self._do.hint(told)
        self._do.update()
        self._watch_joins()

    def _draft_identified(self) -> None:
        self._parts.frame.drafts.show(self._parts.source.drafts())
        self._flush_pending()

    def _flush_pending(self) -> None:
        self._do.run(self._parts.sending.connection_changed(), None)

    def _presence_changed(self) -> None:
        self._parts.source.presence_changed()
        if self._session.is_live:
            self.identity.is_known()
        self._parts.guide.presence_changed()
        self._parts.surroundings.update_participants()
        self._do.suggest()

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self._parts.frame.drafts.show(self._parts.source.drafts())
        if self._parts.guide.cells_changed(change):
            self._do.suggest()
