"""Commands that are typed as a message: `/theme`, `/new x`, and every action of the palette."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from textual.theme import BUILTIN_THEMES

from antiphon.completion import (
    Completion,
    SlashCommand,
    complete_agent_command,
    complete_command,
    parse_command,
)
from antiphon.file_mentions import complete_address
from antiphon.input_queue import InputQueue
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.known_contexts import KnownContexts, create_context, rename_context
from antiphon.screens.sidebar_view import SidebarView
from antiphon_kernel.types.enums import ANSWERING_KINDS, PrincipalKind
from antiphon_kernel.types.quoting import join_names, quote


class SlashCommands(Controller):
    """Completes what is typed, finds the command of a message, and runs it."""

    def __init__(
        self, scope: ActionScope, contexts: KnownContexts, sidebar: SidebarView, keys: InputQueue
    ) -> None:
        super().__init__(scope)
        self._contexts = contexts
        self._sidebar = sidebar
        self._keys = keys

    def complete(self, before: str, is_first_line: bool) -> Completion | None:
        """Return what the end of a line of the message can become."""
        if is_first_line and before.startswith("/"):
            return complete_command(before, self.available())
        agents = {one.name: one.commands for one in self._scope.models.agents}
        if is_first_line and (found := complete_agent_command(before, agents)) is not None:
            return found
        words = {PrincipalKind.HUMAN.value: "person"}
        words |= dict.fromkeys((kind.value for kind in ANSWERING_KINDS), "model")
        known = {one.username: one.kind for one in self._session.document.members()}
        known |= {one.username: one.kind for one in self._session.presence().values()}
        names = {name: words[kind] for name, kind in known.items() if kind in words}
        names |= dict.fromkeys(self._scope.models.here.names, "model")
        names |= dict.fromkeys(agents, "agent")
        return complete_address(before, names, self._session.project)

    def available(self) -> Mapping[str, SlashCommand]:
        """Return the commands that can be typed now, by name: those of the palette, and more."""
        models, situation = self._scope.models, self._scope.host.situation
        labels = sorted(one.label for one in self._contexts.others)
        themes = sorted(self._scope.host.app.available_themes.keys() - BUILTIN_THEMES.keys())
        open_labelled = partial(self._to_context, self._open_labelled)
        create = partial(self._to_context, self._create)
        show_theme = partial(self._scope.frame.choose, "theme")
        with_arguments = (
            SlashCommand("theme", "Show another theme.", show_theme, "a theme", themes),
            SlashCommand(
                "model", "Choose who answers here.", models.choose, "a model", models.here.names
            ),
            SlashCommand("context", "Open another context.", open_labelled, "a context", labels),
            SlashCommand("new", "Make a context and open it.", create, "a name"),
            SlashCommand("rename", "Rename this context.", self._rename, "a name"),
            SlashCommand(
                "refer", "Refer to a file, which models then read.", self._refer, "a path"
            ),
        )

        def call(action: str, _: str) -> None:
            self._scope.host.call_action(action)

        plain = (
            SlashCommand(
                action.name.replace("_", "-"),
                situation.fill(action.title),
                partial(call, action.name),
            )
            for action in self._scope.keymap.palette_actions(situation)
        )
        return {one.name: one for one in (*with_arguments, *plain)}

    def run(self, text: str) -> bool:
        """Do what a message says that is a command; whether it is one."""
        found = parse_command(text)
        if found is None:
            return False
        name, argument = found
        command = self.available().get(name)
        if command is None:
            self._hint(
                f"There is no command /{name}: / lists them. A space before the / sends a message."
            )
        elif bool(argument) != bool(command.argument) or (
            command.choices and argument not in command.choices
        ):
            known = f": {join_names(command.choices)}" if command.choices else ""
            self._hint(f"/{name} takes {command.argument or 'nothing behind it'}{known}.")
        else:
            self._scope.composer.draft.clear()
            calling = command.run(argument)
            if calling is not None:
                work = self._put_back_if_refused(calling, text)
                self._scope.host.run_in_background(work)
        return True

    async def _put_back_if_refused(self, calling: Coroutine[Any, Any, bool], text: str) -> None:
        if not await calling:
            self._scope.composer.draft.put_back(text)
            self._scope.composer.editor.action_text_end()

    # Contexts

    def _to_context(
        self, command: Callable[[str], Coroutine[Any, Any, bool]], label: str
    ) -> Coroutine[Any, Any, bool]:
        """Let keys wait for the context that a command opens: what is typed next is for that."""
        release = self._keys.hold()

        async def held() -> bool:
            is_opened = await command(label)
            release()
            await self._keys.handled()  # here, if nothing was opened
            return is_opened

        return held()

    async def _open_labelled(self, label: str) -> bool:
        await self._contexts.fetch()
        found = next((one.id for one in self._contexts.others if one.label == label), "")
        if found or not self._session.is_live:
            self._sidebar.open_context(found)
        else:
            self._hint(f"There is no other context {quote(label)}.")
        return self._session.is_live and bool(found)

    async def _create(self, label: str) -> bool:
        made = await create_context(self._scope, label)
        if made is not None:
            self._scope.open_context(made)
        return made is not None

    async def _refer(self, place: str) -> bool:
        """Put a reference to `PATH`, `PATH:LINE` or `PATH#L1-L9` into the document."""
        path = re.sub(r":(\d+)\Z", r"#L\1", place)
        params = {"context": self._session.document.context, "kind": "file", "path": path}
        return await self._scope.call("block.create", params, "Not referred to") is not None

    async def _rename(self, label: str) -> bool:
        context = self._session.document.context or ""
        return await rename_context(self._scope, context, label) is not None
