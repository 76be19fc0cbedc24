"""The kernel: opens contexts, knows principals and sessions, runs tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from antiphon_kernel.access import (
    VIA_TURN,
    AccessControl,
    CommitFence,
    Invitations,
    KeyRequests,
    Members,
    Sessions,
    SshSessions,
    ToolPermissions,
    WriteGuard,
    check_project_files,
    check_tool,
)
from antiphon_kernel.cluster import Cluster, NewsKind
from antiphon_kernel.contexts import BlockOwners, Context, PresenceRecorder, UseScope
from antiphon_kernel.contexts.lineage.drifts import Drifts
from antiphon_kernel.contexts.opening import (
    ContextRegistry,
    First,
    OpenContexts,
    Quarantine,
    SearchIndex,
    Takeover,
)
from antiphon_kernel.conversation import ConversationTrees, UsageSums, layout_of
from antiphon_kernel.files.file_contexts import FILE_PREFIX, FileContexts, FilePlace
from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.layout import PathError, is_path, parse_path
from antiphon_kernel.limits import DEFAULT_LIMITS, Limits
from antiphon_kernel.registry import Registry, Tool
from antiphon_kernel.storage import AUTH_FILE, JOURNAL_FILE, ContextRow, Journal
from antiphon_kernel.subscriptions import Subscriptions
from antiphon_kernel.types.clock import Clock, SystemClock
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.enums import ANSWERING_KINDS, PrincipalKind
from antiphon_kernel.types.errors import (
    ErrorCode,
    block_not_found,
    kernel_is_closing,
)
from antiphon_kernel.types.ids import (
    SYSTEM_NAME,
    BlockId,
    IdSource,
    KernelId,
    SessionId,
    split_block,
)
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.roles import AccessRole, Permission


class Kernel:
    """One running instance on one data folder. Belongs to one event loop."""

    def __init__(
        self,
        journal: Journal,
        members: Members,
        data: Path,
        project: Path,
        registry: Registry,
        clock: Clock,
        ids: IdSource,
        limits: Limits,
        cluster: Cluster | None = None,
    ) -> None:
        self.project, self.data = project, data
        self.cluster = cluster
        """The other kernels on the same database; None if the kernel has files of its own."""
        ownership = cluster.ownership if cluster is not None else None
        self.registry = registry
        self.clock = clock
        self.ids = ids
        self.limits = limits
        self.id: KernelId
        self.label: str
        """How people call this kernel; the name of its project's folder unless it was given one."""
        self.owner: Principal
        self.system: Actor
        self.members, self.principal = members, members.principal
        self.invitations = Invitations(members, clock, limits.clients_per_invitation)
        self.tool_permissions = ToolPermissions(members.auth, clock)
        self.sessions = Sessions()
        self.ssh = SshSessions(self.sessions)
        self.key_requests = KeyRequests(clock)
        self.subscriptions = Subscriptions(ids, limits)
        self.access = AccessControl(members, self.invitations, self.sessions, clock)
        self.reached_at: str | None = None
        """`ws://HOST:PORT/sync`, once it listens."""
        self.journal = journal
        journal.files_lost.listen(self.subscriptions.close)
        guard = WriteGuard(self.sessions, members)
        self.contexts = ContextRegistry(journal, clock, ids, guard)
        self.search = SearchIndex(journal.search, self.contexts.rows, self.context, self.owns)
        self.quarantine = Quarantine(journal)
        self.usage = UsageSums(journal)
        self.trees = ConversationTrees(self.contexts.rows, self.contexts.root, self.context)
        lease = limits.write_lease_seconds
        self.writers = BlockOwners(members, self.tool_permissions, lease, ids.client_id)
        self.open_contexts = OpenContexts(
            self.contexts, self.quarantine, self.writers, self.trees.root, limits, ownership
        )
        self.opened, self.closed = self.open_contexts.opened, self.open_contexts.closed
        self.presences = PresenceRecorder(journal, clock)
        self.opened.listen(self.presences.follow)
        self.submissions = self.open_contexts.submissions
        self.files = FileContexts(
            self.contexts,
            self.open_contexts,
            project,
            data,
            limits,
            self.source_actor,
        )
        self.drifts = Drifts(journal)
        self._sources: dict[str, Actor] = {}
        self._reading_again = asyncio.Lock()
        self._reading_due = object()
        """Another one as soon as a reading has begun that serves whoever knows the one before."""
        self.closed.listen(self.trees.forget)
        self.takeover: Takeover | None = None
        """Looks after the contexts of kernels that have died, if there are others."""
        if cluster is not None:
            self._join(cluster)
        self._closed = False

    @classmethod
    async def open(
        cls,
        data: Path,
        project: Path,
        *,
        registry: Registry,
        owner: str = "owner",
        clock: Clock | None = None,
        ids: IdSource | None = None,
        limits: Limits = DEFAULT_LIMITS,
        spare: Path | None = None,
        store: str | None = None,
    ) -> Kernel:
        """Open the kernel of a data folder, founding it if it is new.

        Args:
            owner: username of the owner, if the kernel is founded now.
            spare: a file to copy the journal to if it is deleted or replaced.
            store: URL of a database in Postgres that has the journal and all of access, instead of
                files in the folder.
        """
        data.mkdir(0o700, parents=True, exist_ok=True)  # noqa: ASYNC240  a thread would stay
        clock = clock or SystemClock()
        ids = ids or IdSource(clock.now_ms)
        async with AsyncExitStack() as stack:
            journal = await Journal.open(store or data / JOURNAL_FILE, spare)
            stack.push_async_callback(journal.close)
            is_founded = store is None or await journal.contexts()
            async with nullcontext() if is_founded else journal.alone("founding"):
                members = await Members.open(journal, store or data / AUTH_FILE, clock, ids)
                stack.push_async_callback(members.close)
                journal.depend_on(members.auth.database)
                cluster = None
                if store is not None:
                    cluster = await Cluster.open(store, limits.kernel_lease_seconds)
                    stack.push_async_callback(cluster.close)
                kernel = cls(journal, members, data, project, registry, clock, ids, limits, cluster)
                await kernel._start(owner)
            stack.pop_all()  # from here on `Kernel.close` does it
        return kernel

    def _join(self, cluster: Cluster) -> None:
        ownership, news = cluster.ownership, cluster.news
        self.open_contexts.read_again = self._read_again
        guard, members = self.contexts.guard, self.members
        self.journal.fence = CommitFence(ownership, self.contexts.root, guard, members)
        self.members.auth.changed.listen(partial(news.announce, NewsKind.MEMBERS))
        news.follow(NewsKind.MEMBERS, self._read_access)
        self.contexts.is_shared = True
        self.contexts.stated.listen(self._announce_contexts)
        self.drifts.known.listen(partial(news.announce, NewsKind.CONTEXTS))
        self.search.missed.listen(partial(news.announce, NewsKind.SEARCH))
        news.follow(NewsKind.CONTEXTS, self._read_again)
        news.follow(NewsKind.SEARCH, self.search.index_own)
        self.takeover = Takeover(
            ownership, self.contexts, self.open_contexts, self.limits.takeover_look_seconds
        )

    def _announce_contexts(self, rows: Sequence[ContextRow]) -> None:
        assert self.cluster is not None
        for row in rows:
            if row.origin is None:
                self.cluster.ownership.know_new(row.number)
        self.cluster.news.announce(NewsKind.CONTEXTS)

    async def _read_access(self) -> None:
        """Read what other kernels may have changed of members, permissions and the label."""
        permissions = self.tool_permissions.load(lambda one: one in self.open_contexts.ids())
        *_, facts = await asyncio.gather(
            self.members.read_again(), permissions, self.journal.settings("label")
        )
        self.label = facts.get("label") or self.label

    async def _read_again(self) -> None:
        """Read what other kernels may have changed of contexts, files and drifts.

        Who asks while it is being read waits for one reading more, which serves all of them.
        """
        due = self._reading_due
        async with self._reading_again:
            if due is self._reading_due:
                self._reading_due = object()
                # Whoever takes a context waits for this: members are read apart from it.
                await self.contexts.load()
                await asyncio.gather(
                    self.drifts.load(self.contexts.has_number), self.files.read_rows()
                )

    def owns(self, row: ContextRow) -> bool:
        """Return whether this kernel, and no other one, has a context."""
        return self.cluster is None or self.cluster.ownership.owns(self.contexts.root(row.number))

    async def _start(self, owner: str) -> None:
        await self.invitations.load()
        await self.tool_permissions.load()
        facts = await self.journal.settings()
        if not {"kernel", "owner"} <= facts.keys():
            founder = await self.members.principal(owner, role=AccessRole.OWNER)
            founded = {"owner": founder.username, "kernel": self.ids.uuid7()}
            for key, value in founded.items():
                await self.journal.set_setting(key, value)
            facts |= founded
        self.id = KernelId(facts["kernel"])
        self.label = facts.get("label") or self.project.resolve().name
        self.owner = self.access.owner = self.members[facts["owner"]]
        if self.members.role_of(self.owner) is not AccessRole.OWNER:
            await self.members.give_role(self.owner, AccessRole.OWNER)
        self.system = self.open_session(self.members[SYSTEM_NAME], "kernel")
        self.writers.system = self.system
        await self.contexts.load()
        await self.drifts.load(self.contexts.has_number)
        await self.files.load()
        if not self.contexts.rows():
            with UseScope():  # not as long as the task that opens the kernel
                await self.create_context(DEFAULT_CONTEXT)
        self.quarantine.scan(self.contexts.rows())
        if self.cluster is not None and self.takeover is not None:
            self.cluster.news.start()
            self.takeover.start()

    def start_closing(self) -> None:
        """Notify waiters and subscribers that nothing more will come."""
        self.wake_waiters()
        self.subscriptions.close(kernel_is_closing())

    def wake_waiters(self) -> None:
        """Answer the calls that wait for somebody to come, to ask or to be dismissed."""
        self.access.news.announce()
        self.ssh.wake_waiters()
        self.key_requests.news.announce()

    async def close(self) -> None:
        """Flush appends, mark what was running as interrupted, checkpoint and close the file.

        Asking once more does nothing.
        """
        if self._closed:
            return
        self._closed = True
        try:
            await self.quarantine.close()
            if self.takeover is not None:
                await self.takeover.close()
            await self.search.stop()
            await self.files.close()
            await self.open_contexts.interrupt_all()
            self.start_closing()  # subscribers hear of the end, not of contexts that move
            await self.open_contexts.hand_over_all()
            self.access.close()
            # What must be on disk is; snapshots take longer and may be cut short.
            await self.open_contexts.close()
        finally:
            self.presences.flush()
            if self.cluster is not None:
                await self.cluster.close()
            await self.members.close()
            await self.journal.close()

    # Principals and sessions

    async def rename(self, label: str) -> None:
        """Give the kernel another label; stored when this returns."""
        await self.journal.set_setting("label", label)
        self.label = label
        self.members.auth.changed.notify()

    def open_session(
        self,
        principal: Principal,
        via: str,
        *,
        credential: int | None = None,
        lasts: bool = True,
        within: SessionId | None = None,
    ) -> Actor:
        """Begin a session of a principal.

        It is recorded with the first change that it commits. Before that, whoever joins with an
        invitation is recorded, and every session of the others that lasts.

        Args:
            via: how it came in: `unix`, `tcp`, `turn`, …
            credential: number of the invitation that let it in.
            lasts: False for a session of a single call.
            within: the session over SSH that it is a part of.
        """
        about = {"credential": credential, "lasts": lasts, "within": within}
        actor = self._actor(principal, via, **about)
        self.sessions.open(actor)
        if self.access.on_session_opened(actor) or (credential is None and lasts):
            self.journal.add_session(actor)
        return actor

    def open_work_session(self, asker: Actor, needs: Permission) -> Actor:
        """Begin a session for what `asker` has asked for, which outlives their connection.

        It is dismissed when the asker is, or no longer has the right that it needs; from the start
        if that has happened.
        """
        about = {"credential": asker.credential, "needs": needs}
        actor = self._actor(asker.principal, VIA_TURN, **about)
        self.access.open_work_session(actor, asker)
        return actor

    def _actor(self, principal: Principal, via: str, **about: Any) -> Actor:
        session, role = SessionId(self.ids.uuid7()), self.members.role_of(principal)
        return Actor(principal, session, role, via, self.clock.now_ms(), **about)

    async def close_session(self, actor: Actor) -> None:
        """A session has ended: what it left running is interrupted.

        What a session of a single call has left running is interrupted when no write follows soon.
        """
        for guest in self.ssh.remove_host(actor.session):
            self.access.end_session(guest.session, "The SSH host has ended.")
            await self.close_session(guest)
        self.sessions.close(actor.session)
        self.subscriptions.end_session(actor.session)
        self.access.on_session_closed(actor)
        leaves_leases = not actor.lasts and self.sessions.dismissal(actor) is None
        await self.open_contexts.end_session(actor.session, leaves_leases=leaves_leases)

    async def source_actor(self, name: str) -> Actor:
        """Return the actor of edits that come from a source outside, such as the disk."""
        if name not in self._sources:
            principal = await self.members.principal_of_kind(name, PrincipalKind.SOURCE)
            self._sources[name] = self.open_session(principal, "kernel")
        return self._sources[name]

    # Contexts

    async def create_context(
        self, label: str, first: First | None = None, asker: Actor | None = None
    ) -> Context:
        """A new context; empty, unless `first` says what is in it from the start.

        Args:
            asker: whoever wants it, and must have the right to write when it is committed; the
                kernel itself if None.

        Raises:
            AntiphonError: invalid_params if the label is taken or cannot be one; permission_denied.
        """
        row = await self.contexts.create(label, self.system, first, asker=asker or self.system)
        return await self.context(row.id)

    async def context(
        self, reference: str = DEFAULT_CONTEXT, *, is_partial: bool = False
    ) -> Context:
        """An open context by label, id or prefix of an id.

        It stays open until the tool call that asks is over, outside of one until the task is. What
        goes on with it after that adds itself to its `users`.

        Args:
            is_partial: whether the last blocks of a long one are enough (`Context.is_partial`).

        Raises:
            AntiphonError: context_not_found, ambiguous_id, storage_failed.
        """
        found = await self.contexts.look_up(reference)
        context = self.open_contexts.get(found) or await self.open_contexts.open(
            found, is_partial=is_partial
        )
        if not is_partial:
            await context.whole()
        return context

    def block_name(self, block: str) -> str:
        """Return the short form of a block's id, whether its context is open or not."""
        found = BlockId.parse(block)
        label, author = self.contexts[found.context].label, self.members.find(found.principal)
        return f"{label}.{author.username}.{found.seq}"

    async def find_block(self, reference: str) -> tuple[Context, str]:
        """A block by any printable form of its id, or by a path that `context.layout` shows.

        A path is looked up in the context that stands before it, `LABEL/ar:…`; without one in the
        default context and then in those that are open. `file:PATH` is the block of a file,
        also with lines behind it (`#L10-L20`), which readers take into account.

        Raises:
            AntiphonError: block_not_found, context_not_found, ambiguous_id.
        """
        if reference.startswith(FILE_PREFIX):
            file = await self.files.open(FilePlace.parse(reference).path)
            return file.context, file.block
        if is_path(reference):
            return await self._find_path(reference, None)
        in_context, _, path = reference.partition("/")
        if is_path(path):
            return await self._find_path(path, in_context)
        in_context, by, seq = split_block(reference)
        context = await self.context(in_context)
        if reference in context.document:
            return context, reference
        author = await self.members.look_up(by, missing=ErrorCode.BLOCK_NOT_FOUND)
        block = str(BlockId(context.id, author.id, seq))
        if block not in context.document:
            raise block_not_found(
                f"There is no block {quote(reference)}: block.list names those that there are.",
                reference,
            )
        return context, block

    async def _find_path(self, text: str, in_context: str | None) -> tuple[Context, str]:
        try:
            path = parse_path(text)
        except PathError as error:
            raise block_not_found(f"{str(error)[:1].upper()}{str(error)[1:]}.", text) from error
        context = await self.context(in_context or DEFAULT_CONTEXT)
        others = self.open_contexts.ids() if in_context is None else ()
        for name in (context.id, *others):
            one = self.open_contexts.get(name)
            if one is None:
                continue  # closed while another was being read
            await one.whole()
            await layout_of(one).load()
            block = layout_of(one).find(path)
            if block is not None:
                return one, block
        raise block_not_found(
            f"There is no block at the path {quote(text)}: context.layout shows those that there"
            " are; for another context than the default one put its label and a slash in front.",
            text,
        )

    # Calls

    async def call(
        self, actor: Actor, tool: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run one tool; its change is on disk when this returns.

        Raises:
            AntiphonError: whatever the tool can fail with; see the catalogue.
        """
        if self._closed:
            raise kernel_is_closing()
        found = self.registry[tool]
        if found.needs is Permission.OWN:
            await self.members.read_again()
        call = self.start_call(actor, found)
        with UseScope():
            result = await found.handler(call, found.parse(params or {}))
            return result.model_dump(mode="json", exclude_none=True)

    def start_call(self, actor: Actor, tool: Tool) -> Call:
        """Begin a call whose parameters are typed values; who makes it may make it.

        Raises:
            AntiphonError: permission_denied; no_kernel, if the kernel is closing.
        """
        if self._closed:
            raise kernel_is_closing()
        call = Call(self, actor, tool)
        call.check()
        return call


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: who asks, and the kernel that answers."""

    kernel: Kernel
    actor: Actor
    tool: Tool

    def check(self) -> None:
        """Raise if the caller may not do this, or no longer.

        What a context takes is checked again in the moment of the write, by its `WriteGuard`.

        Raises:
            AntiphonError: permission_denied.
        """
        self.kernel.sessions.check(self.actor)
        check_tool(self.tool, self.actor.principal, self.role)

    @property
    def role(self) -> AccessRole:
        """The caller's, as it is now."""
        return self.kernel.members.role_of(self.actor.principal)

    async def context(self, reference: str | None, *, is_partial: bool = False) -> Context:
        """The context that a request names, or the default one; see `Kernel.context`."""
        reference = reference or DEFAULT_CONTEXT
        return self._checked(await self.kernel.context(reference, is_partial=is_partial))

    def check_files(self, path: str) -> None:
        """Raises AntiphonError permission_denied if the caller names no files by their paths.

        A model in a turn has the rights of whoever asked, which the turn has checked.
        """
        is_turn = self.actor.via == VIA_TURN and self.actor.principal.kind in ANSWERING_KINDS
        if not is_turn and not self.kernel.files.is_known(path):
            check_project_files(self.actor.principal, self.role)

    def _checked(self, context: Context) -> Context:
        """Return a context that was waited for, if the caller may still see it."""
        self.check()
        files = self.kernel.files
        files.check_shown(self.actor.principal, files.path_of(context.id))
        return context

    async def file(self, path: str) -> OpenFile:
        """The file of the project that a request names, opened."""
        self.check_files(path)
        file = await self.kernel.files.open(path)
        self._checked(file.context)
        return file

    async def block(self, reference: str) -> tuple[Context, str]:
        """The block that a request names, with every streamed append in its text."""
        if reference.startswith(FILE_PREFIX):
            self.check_files(FilePlace.parse(reference).path)
        context, block = await self.kernel.find_block(reference)
        self._checked(context).appends.flush(block)
        return context, block
