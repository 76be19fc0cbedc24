"""The contexts of the kernel, as it lists them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from antiphon.project_files import KernelFile
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.session import KernelCalls
from antiphon.widgets.block_list import MessageLocation, Siblings
from antiphon.widgets.sidebar import ContextName
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.signal import Signal

ANSWER_SECONDS: Final = 0.5
"""How long is waited for the list of contexts before something else is done."""


class KnownContexts(Controller):
    """The contexts as the kernel listed them last, and which messages here branch."""

    def __init__(self, scope: ActionScope, asked_for: str) -> None:
        """`asked_for` is the name of the context here until the document says it."""
        super().__init__(scope)
        self._document = scope.session.document
        self._asked_for = asked_for
        self._listed: Sequence[ContextName] = ()
        self._branched_at: Sequence[tuple[str, int]] = ()
        """Ids and versions of the contexts when it was last asked where they branch."""
        self.changed = Signal[()]()
        self.files: Sequence[KernelFile] = ()
        """The files that are open, as the kernel listed them last."""

    @property
    def label(self) -> str:
        """The name of the context here, or the path of the file."""
        if self._scope.file is not None:
            return displayable_in_a_row(self._scope.file.path)
        return displayable_in_a_row(self._document.label or self._asked_for)

    @property
    def others(self) -> Sequence[ContextName]:
        return [one for one in self._listed if one.id != self._document.context]

    @property
    def all(self) -> Sequence[ContextName]:
        """The contexts, this one among them, also if it is archived."""
        here = self._document.context
        named = [one if one.id != here else one._replace(label=self.label) for one in self._listed]
        if self._scope.file is None and not any(one.id == here for one in named):
            mark = " · archived" if self._document.archived else ""
            named.append(ContextName(here or "", self.label + mark))
        return named

    def label_of(self, context: str) -> str | None:
        """Return the label of a context of the kernel, as far as it is known."""
        if context == self._document.context:
            return self.label
        return next((one.label for one in self._listed if one.id == context), None)

    async def fetch(self) -> None:
        if not self._session.is_live:
            return
        self._listed = await list_contexts(self._scope, self._scope.memory.seen())
        self._source.show_labels({one.id: displayable_in_a_row(one.label) for one in self._listed})
        for one in self._listed:
            if one.id == self._document.context:
                self._scope.memory.saw(one.id, one.version)
        self.changed.notify()

    async def fetch_files(self) -> None:
        """Ask which files are open."""
        try:
            told = await self._session.call("file.status", {})
        except AntiphonError:  # by a kernel that is not there, or that is older
            return
        files = [KernelFile.of(one) for one in told["files"]]
        if files != self.files:
            self.files = files
            self.changed.notify()

    async def refresh(self) -> None:
        """As `fetch`, but do not wait long for the kernel's answer."""
        asked = asyncio.create_task(self.fetch(), name="contexts")
        await asyncio.wait({asked}, timeout=ANSWER_SECONDS)

    async def fetch_branches(self) -> None:
        """Ask which contexts there are, and if some are forks, which messages here branch."""
        await self.fetch()
        now = [(one.id, one.version) for one in self._listed]
        if now == self._branched_at:
            return
        result: Mapping[str, Any] | None = {"messages": ()}
        if self._scope.file is None and any(one.source is not None for one in self._listed):
            params, failed = {"context": self._document.context}, "The branches cannot be listed"
            result = await self._scope.call("message.branches", params, failed)
        if result is not None:
            self._branched_at = now
            found = {
                tuple(one["blocks"]): Siblings(
                    one["position"], tuple(map(MessageLocation.of, one["siblings"]))
                )
                for one in result["messages"]
            }
            self._source.branches.show(found)
            self.changed.notify()


async def list_contexts(
    kernel: KernelCalls, seen: Mapping[str, int], *, archived: bool = False
) -> list[ContextName]:
    """Return the contexts, oldest first, with what changed since they were `seen`."""
    params: dict[str, Any] = {"seen": dict(seen), "archived": archived}
    result = await kernel.call("context.list", params, "The contexts cannot be listed")
    return [
        ContextName(
            one["context_id"],
            displayable_in_a_row(one["label"]),
            one["context_version"],
            one.get("changed", 0),
            source=one.get("source_context"),
            changed_at=one["last_change"],
            is_archived="archived" in one,
            ahead=one.get("ahead", 0),
            behind=one.get("behind", 0),
            drifted_from=displayable_in_a_row(", ".join(one.get("drifted_from", ()))),
        )
        for one in ([] if result is None else result["contexts"])
    ]


async def create_context(kernel: KernelCalls, label: str) -> str | None:
    """Make a context; return its id, None if refused."""
    made = await kernel.call("context.create", {"label": label}, "Not made")
    return None if made is None else str(made["context_id"])


async def fork_context(kernel: KernelCalls, context: str, **part: Any) -> str | None:
    """Copy a context or a `part` of it; return the copy's id, None if refused."""
    made = await kernel.call("context.fork", {"context": context, **part}, "Not forked")
    return None if made is None else str(made["context_id"])


async def rename_context(kernel: KernelCalls, context: str, label: str) -> Mapping[str, Any] | None:
    """Give a context another label; None if refused."""
    params = {"context": context, "label": label}
    return await kernel.call("context.rename", params, "Not renamed")
