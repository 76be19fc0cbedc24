"""From a written message to a submitted one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from antiphon.composer.own_draft import OwnDraft
from antiphon.session import Session
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError

SHELL_MARK = "!"

NOBODY_AFTER = 1.0
"""Seconds in which a model that answers has shown itself."""

NOBODY = "No model here to answer: `antiphon demo` shows one; !command runs in the shell."

SLOW_AFTER = 2.0
"""Seconds after which a message that was taken and is not there yet is asked after."""

SLOW = "The kernel does not answer: what you sent arrives as soon as it does."


class Sending:
    """Submits the draft, or keeps it until the kernel is there. Never loses its text."""

    def __init__(self, session: Session, draft: OwnDraft, hint: Callable[[str], None]) -> None:
        self._session = session
        self._draft = draft
        self._hint = hint
        self._waiting: str | None = None

    def send(self) -> Coroutine[None, None, None] | None:
        """Enter was pressed: the message is taken now, and sent by awaiting what is returned."""
        text = self._draft.text
        if not text.strip().removeprefix(SHELL_MARK).strip():
            self._hint("Nothing to send yet: write a message, or ! and a command.")
        elif not self._session.is_live or self._draft.block is None:
            self._waiting = text
            self._hint("Will be sent as soon as the kernel answers, unless you go on writing.")
        elif text.startswith(SHELL_MARK):
            self._draft.clear()
            return self._run(text)
        else:
            return self._submit(self._draft.release())
        return None

    async def connection_changed(self) -> None:
        """Send what has been waiting for the kernel and was not touched since."""
        if self._waiting is None or not self._session.is_live or self._session.me is None:
            return
        waiting, self._waiting = self._waiting, None
        if waiting == self._draft.text:
            sending = self.send()
            if sending is not None:
                await sending

    async def _submit(self, block: str) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_AFTER, self._hint, SLOW)
        try:
            await self._session.call("block.status", {"block_id": block, "status": "done"})
        except AntiphonError as error:
            self._draft.take_back(block)
            self._hint(f"Not sent: {error.message}")
            return
        finally:
            slow.cancel()
        await asyncio.sleep(NOBODY_AFTER)
        if not self._has_models():
            self._hint(NOBODY)

    def _has_models(self) -> bool:
        """Whether a model is here, or has ever been."""
        kinds = [one.kind for one in self._session.document.members()]
        kinds += [one.kind for one in self._session.presence().values()]
        return PrincipalKind.MODEL in kinds

    async def _run(self, text: str) -> None:
        command = text.removeprefix(SHELL_MARK).strip()
        context = self._session.document.context
        try:
            await self._session.call("shell.run", {"context": context, "command": command})
        except AntiphonError as error:
            since = self._draft.text
            self._draft.write(text + (f"\n{since}" if since else ""))
            self._hint(f"Not run: {error.message}")
