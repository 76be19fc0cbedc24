"""From a written message to a submitted one, and the branches in which it is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from difflib import get_close_matches
from functools import partial, partialmethod

from antiphon.file_mentions import mentioned_paths, read_mentioned
from antiphon.render.differences import arguments_of
from antiphon.render.view import CellView
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import CommandModal
from antiphon.widgets.block_list import MessageLocation
from antiphon.widgets.composer import SHELL_MARK
from antiphon_kernel.text.mentions import mentions
from antiphon_kernel.types.block_metadata import CAN_RETRY
from antiphon_kernel.types.enums import ANSWERING_KINDS, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, permission_denied
from antiphon_kernel.types.quoting import join_names, quote

NOBODY_AFTER = 1.0
"""Seconds in which a model that answers has shown itself."""

SLOW_AFTER = 2.0
"""Seconds after which a message that was taken and is not there yet is asked after."""

SLOW = "The kernel does not answer: what you sent arrives as soon as it does."


class MessageSubmitter(Controller):
    """Submits the draft, or keeps it until the kernel is there. Never loses its text.

    It also goes from a message to another in its place, and lets models answer once more.

    A command runs at once only if all of it was typed in this window and is on the screen;
    otherwise the person is shown all of it, and asked.
    """

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._draft = scope.composer.draft
        self.waiting: str | None = None
        """The text of the message, if it is to be sent as soon as the kernel answers."""
        self.revised: str | None = None
        """The message that was sent before and that it is to stand in the place of."""
        self._is_asking = False
        self._told = ""
        """The reason for which no model answers, as it was told."""

    def action_send_again(self) -> None:
        """Put the chosen message into the composer: what Enter sends is in its place."""
        block = self._cells.focused_cell
        if block is None or not self._scope.host.situation.own_message:
            self._hint("Only a message of your own can be edited and sent again.")
        elif self._draft.text.strip():
            self._hint("The composer is not empty: send or clear it, then edit the message.")
        else:
            self._scope.composer.write(self._source.text(block))
            self.revised = block
            self._hint("<key:send> sends it again, in a branch if something follows it.")

    def copy_command(self, call: CellView) -> None:
        """Put the command of a call into the composer: the call stays as it was made."""
        command = call.text or (arguments_of(call.header.input) or {}).get("command")
        if not command or not isinstance(command, str):
            self._hint("This call has no command that could be run again.")
        elif not self._source.user.works_on_host:
            self._hint("Only an owner runs commands here: <key:copy> copies this one.")
        elif self._draft.text.strip():
            self._hint("The composer is not empty: send or clear it, then copy the command.")
        else:
            self._scope.composer.write(SHELL_MARK + command)
            self._hint(
                "The call stays as it is: edit a copy of it here, or press <key:send> to be asked."
            )

    def draft_changed(self) -> None:
        """Write a new message next if the composer has been cleared."""
        if not self._draft.text:
            self.revised = None

    def send(self) -> Callable[[], Coroutine[None, None, None]] | None:
        """Enter was pressed: the message is taken now, and sent by what is returned."""
        text = self._draft.text
        if not text.strip().removeprefix(SHELL_MARK).strip():
            self._hint("Nothing to send yet: write a message, or ! and a command.")
        elif not self._session.is_live or not self._draft.is_identified:
            self.waiting = text
            self._hint("Will be sent as soon as the kernel answers, unless you go on writing.")
        elif text.startswith(SHELL_MARK):
            if not self._draft.is_typed_here:
                return partial(self._ask_and_run, text, "Not all of it was typed in this window.")
            if not self._scope.composer.shows_all or self._scope.frame.is_covered:
                return partial(self._ask_and_run, text, "It is longer than the composer shows.")
            self._draft.clear()
            return partial(self._run, text, typed_here=True)
        elif self.revised is not None:
            revised, self.revised = self.revised, None
            self._draft.clear()
            return partial(self._send_again, revised, text)
        else:
            self._draft.share()
            block = self._draft.detach()
            self._source.deliveries.begin(block)
            return partial(self._submit, block, text)
        return None

    async def _ask_and_run(self, text: str, reason: str) -> None:
        """Run the command if the person, who is shown this very text, says so."""
        if self._is_asking:
            return
        typed_here = self._draft.is_typed_here
        self._is_asking = True
        try:
            wanted = await self._scope.host.app.push_screen_wait(
                CommandModal(_command(text), reason)
            )
        finally:
            self._is_asking = False
        if not wanted:
            return
        if self._draft.text == text:
            self._draft.clear()
        await self._run(text, typed_here=typed_here)

    async def connection_changed(self) -> None:
        """Send what has been waiting for the kernel and was not touched since."""
        if self.waiting is None or not self._session.is_live or self._session.me is None:
            return
        waiting, self.waiting = self.waiting, None
        if waiting == self._draft.text:
            sending = self.send()
            if sending is not None:
                await sending()

    async def _submit(self, block: str, text: str) -> None:
        addressed = asyncio.create_task(self._unknown_names(mentions(text)))

        loop = asyncio.get_running_loop()
        slow = loop.call_later(SLOW_AFTER, lambda: self._hint(self._session.status.reason or SLOW))
        try:
            await self._attach(block, mentioned_paths(text))
            await self._session.call("block.status", {"block_id": block, "status": "done"})
        except AntiphonError as error:
            self._source.deliveries.cancel(block)
            self._draft.restore(block, text)
            addressed.cancel()
            self._hint(f"Not sent: {error.message}")
            return
        finally:
            slow.cancel()
        if (unknown := await addressed) is not None:
            self._hint(unknown)
            return
        await asyncio.sleep(NOBODY_AFTER)
        kinds = [one.kind for one in self._session.document.members()]
        kinds += [one.kind for one in self._session.presence().values()]
        if not {*kinds} & {*ANSWERING_KINDS} and self._told != self._scope.models.nobody:
            self._told = self._scope.models.nobody
            self._hint(self._told)

    async def _send_again(self, message: str, text: str) -> None:
        params = {"message": message, "content": text}
        result = await self._scope.call("message.edit", params, "Not sent")
        if result is None:
            self._draft.put_back(text)
            self.revised = message
            return
        edited = MessageLocation.of(result)
        try:
            await self._attach(edited.block, mentioned_paths(text))
        except AntiphonError as error:
            self._hint(f"Changed, and not sent again: {error.message}")
            self.follow_answer(edited.context)
            return
        answered = await self._scope.models.answer(edited.block)
        self.follow_answer((answered or edited).context)

    async def _attach(self, block: str, paths: Sequence[str]) -> None:
        """Attach the files that the message names; one that is attached already stays.

        Raises:
            AntiphonError: if one of them cannot be; then none is.
        """
        if paths and self._session.options.is_guest:
            raise permission_denied(
                f"For guests no file can be attached, as {quote(paths[0])} would be: paste its"
                " text. If no file is meant, put a space behind the @."
            )
        if paths:
            files = await asyncio.to_thread(read_mentioned, self._session.project, paths)
            await self._session.call("block.attach", {"block_id": block, "files": files})

    async def _unknown_names(self, names: Sequence[str]) -> str | None:
        """Return a sentence about the names that nobody has whom the kernel knows; None without."""
        if not names:
            return None
        try:
            members = (await self._session.call("kernel.members", {}))["members"]
        except AntiphonError:
            return None  # what became of the message is said, too, and matters more
        people = (PrincipalKind.HUMAN, *ANSWERING_KINDS)
        known = [str(one["username"]) for one in members if one["kind"] in people]
        unknown = [name for name in names if name not in known]
        if not unknown:
            return None
        near = get_close_matches(unknown[0], known, 1)
        there_are = f"Nearest: {near[0]}" if near else f"There are: {join_names(known)}"
        return f"Nobody is called {join_names(unknown)}. {there_are}."

    async def _run(self, text: str, *, typed_here: bool) -> None:
        command = _command(text)
        context = self._session.document.context
        try:
            await self._session.call("shell.run", {"context": context, "command": command})
        except AntiphonError as error:
            self._draft.put_back(text, typed_here=typed_here)
            self._hint(f"Not run: {error.message}")

    # Branches

    def _go_to_sibling(self, step: int) -> None:
        """Show the message so many places further in the place of the focused one."""
        block, hint = self._cells.focused_cell, self._scope.hint
        siblings = None if block is None else self._cells.source.branches.siblings(block)
        if siblings is None:
            hint("No other message stands in the place of this one.")
            return
        position = siblings.position + step
        if not 0 <= position < len(siblings.places):
            hint(f"This is the {'last' if step > 0 else 'first'} of them.")
        elif not self._session.is_live:
            hint("Offline: another branch needs the kernel; try again when it is back.")
        else:
            place = siblings.places[position]
            self._scope.open_context(place.context, place.block)

    action_next_sibling = partialmethod(_go_to_sibling, 1)
    action_previous_sibling = partialmethod(_go_to_sibling, -1)

    async def action_answer_again(self) -> None:
        """Have an answer made again, in a branch; after an error it goes on where it ended."""
        block = self._cells.focused_cell
        if block is None or not self._scope.host.situation.answered:
            self._hint("Only what a model has answered can be answered again.")
            return
        if self._session.document.header(block).metadata.get(CAN_RETRY) is True:
            if await self._scope.models.go_on(block):
                self._cells.to_tail()
            return
        answered = await self._scope.models.answer(block)
        if answered is not None:
            self.follow_answer(answered.context)

    def follow_answer(self, context: str) -> None:
        """Show the end of a context, where a model has been asked to answer."""
        if context == self._session.document.context:
            self._cells.to_tail()
        else:
            self._scope.open_context(context)


def _command(text: str) -> str:
    return text.removeprefix(SHELL_MARK).strip()
