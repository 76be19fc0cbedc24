"""From a written message to a submitted one."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.composer.own_draft import OwnDraft
from antiphon.session import Session
from antiphon_kernel.types.errors import AntiphonError

SHELL_MARK = "!"


class Sending:
    """Submits the draft, or keeps it until the kernel is there. Never loses its text."""

    def __init__(self, session: Session, draft: OwnDraft, hint: Callable[[str], None]) -> None:
        self._session = session
        self._draft = draft
        self._hint = hint
        self._waiting: str | None = None

    async def send(self) -> None:
        """Enter was pressed."""
        text = self._draft.text
        if not text.strip().removeprefix(SHELL_MARK).strip():
            self._hint("Nothing to send yet: write a message, or ! and a command.")
        elif not self._session.is_live or self._session.me is None:
            self._waiting = text
            self._hint("Will be sent as soon as the kernel answers, unless you go on writing.")
        elif text.startswith(SHELL_MARK):
            await self._run(text)
        else:
            await self._submit()

    async def connection_changed(self) -> None:
        """Send what has been waiting for the kernel and was not touched since."""
        if self._waiting is None or not self._session.is_live or self._session.me is None:
            return
        waiting, self._waiting = self._waiting, None
        if waiting == self._draft.text:
            await self.send()

    async def _submit(self) -> None:
        block = self._draft.release()
        try:
            await self._session.call("block.status", {"block_id": block, "status": "done"})
        except AntiphonError as error:
            self._draft.take_back(block)
            self._hint(f"Not sent: {error.message}")

    async def _run(self, text: str) -> None:
        self._draft.clear()
        command = text.removeprefix(SHELL_MARK).strip()
        context = self._session.document.context
        try:
            await self._session.call("shell.run", {"context": context, "command": command})
        except AntiphonError as error:
            since = self._draft.text
            self._draft.write(text + (f"\n{since}" if since else ""))
            self._hint(f"Not run: {error.message}")
