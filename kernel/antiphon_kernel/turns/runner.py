"""Runner of each context's work: turns of models, queued one after the other, and commands."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from antiphon_kernel.access import VIA_TURN
from antiphon_kernel.config import read_project_instructions
from antiphon_kernel.contexts import Context, Submission, WriterPresence
from antiphon_kernel.conversation import layout_of
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.mcp_servers import START_SECONDS, McpServers, McpTool
from antiphon_kernel.providers import ErrorKind, ModelConfig, ToolDefinition
from antiphon_kernel.storage import DriftRow, ToolPermission
from antiphon_kernel.tasks import BackgroundTasks, run_uninterrupted
from antiphon_kernel.text.mentions import mentions
from antiphon_kernel.turns.agents.agent_turn import AgentTurn
from antiphon_kernel.turns.agents.agents import Agents
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import BlockWriter, CallBlocks
from antiphon_kernel.turns.model_tools import ModelTools, tools_of
from antiphon_kernel.turns.models import Models, system_text
from antiphon_kernel.turns.permission import PermissionDesk
from antiphon_kernel.turns.prompt_reading import AnsweringModel, PromptReader, instruction_tokens
from antiphon_kernel.turns.served_calls import ServerQuestions, TurnServers
from antiphon_kernel.turns.turn import (
    MAX_ROUNDS,
    Turn,
    TurnFailed,
    TurnSettings,
    report_failure,
    resumed_calls,
)
from antiphon_kernel.types import block_metadata
from antiphon_kernel.types.clock import moment_or_start
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.drift import drift_id, is_drifted
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import ContextId, SessionId
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor, Principal
from antiphon_kernel.types.roles import AccessRole, Permission

_log = logging.getLogger(__name__)

ENDED_KEPT: Final = 64
"""Turns and commands that are known after their end, for who asks late."""

SERVER_SECONDS: Final = 5.0
"""How long the first request of a turn waits for MCP servers that are not there yet."""

AUTO_PLAY_SECONDS = 1.0
"""How long after the first person has come the models begin by themselves."""


_Write = Callable[[BlockWriter, WriterPresence], Awaitable[None]]


@dataclass(eq=False, slots=True)
class Job:
    """A turn or a command, from being asked for to its end."""

    context: ContextId
    username: str
    """Of whoever is at work: a model's name until it plays, then its principal's username."""
    prompt: str | None = None
    """Block that a turn answers; None of a command."""
    model: str | None = None
    """Name of the model or agent whose turn it is; None of a command."""
    session: SessionId | None = None
    """Session of a turn, once its model is known to everybody."""
    waiting: bool = False
    """Queued behind another turn of the same model."""
    stopping: bool = False
    stopped_by: str | None = None
    """Username of whoever stopped it."""
    turn: Turn | AgentTurn | None = None
    """The turn, once its model is known to everybody."""
    task: asyncio.Task[None] = field(init=False)

    def stop(self, by: str | None) -> None:
        """Cancel it, once: a second cancellation would disturb the cleaning up."""
        if not self.stopping:
            self.stopping = True
            self.stopped_by = by
            self.task.cancel()


class TurnRunner:
    """Starts turns for submissions, runs people's commands and stops both."""

    def __init__(
        self,
        kernel: Kernel,
        models: Models,
        settings: TurnSettings | None = None,
    ) -> None:
        """`settings` are of all turns; as the models are configured if absent."""
        self._kernel = kernel
        self.models = models
        self._settings = settings or TurnSettings(
            max_rounds=models.config.context.max_rounds or MAX_ROUNDS,
            limits=models.config.context,
            instructions=partial(read_project_instructions, kernel.project),
        )
        self.agents = Agents(kernel, models.config.agents)
        """Those whose names are no models'."""
        self._works: list[Job] = []
        self._ended: deque[Job] = deque(maxlen=ENDED_KEPT)
        self._names: dict[str, str] = {}
        """Name of the model or agent by its principal's id."""
        self.permissions = PermissionDesk(
            kernel, lambda principal: models.permissions(self._names.get(principal, ""))
        )
        self.servers = McpServers(models.config.mcp, kernel.project, kernel.data)
        self.questions = ServerQuestions()
        kernel.files.is_denied = self.permissions.denies_file
        _runners[id(kernel)] = self
        kernel.submissions.listen(self._submitted)
        kernel.opened.listen(self._opened)
        kernel.closed.listen(self._left)
        self._tasks, self._turns = BackgroundTasks(_log), BackgroundTasks(_log)
        self._tasks.start(self._register(), "models' principals")
        if kernel.cluster is None:
            self._tasks.start(self._resume(), "turns that go on")
        if models.autostart:
            self._tasks.start(self._autostart(), "auto-play")

    @property
    def busy(self) -> bool:
        """Return whether any turn or command runs or waits, other than for a person's decision."""
        find, waiting = self._kernel.members.find, self.permissions.waiting.values()
        asking = {(one.context.id, find(one.model).username) for one in waiting}
        return any((work.context, work.username) not in asking for work in self._works)

    async def wait_idle(self) -> None:
        """Wait until nothing runs or waits any more."""
        while self._works:
            await asyncio.wait({work.task for work in self._works})

    async def wait_answered(self, context: Context, prompt: str) -> list[Job]:
        """Wait until no turn answers a block any more; return the last one of each model.

        Everything that they wrote is on disk then. Of turns that had ended before, the last 64 of
        the kernel are known.
        """

        def answering(jobs: Iterable[Job]) -> list[Job]:
            return [one for one in jobs if (one.context, one.prompt) == (context.id, prompt)]

        while running := answering(self._works):
            await asyncio.wait({one.task for one in running})
        await context.wait_persisted()
        return list({one.username: one for one in answering(self._ended)}.values())

    async def close(self) -> None:
        """Stop everything; what was written stays, marked as interrupted.

        Calls that wait for a person's decision go on waiting, until there is a runner again.
        """
        self.permissions.close()
        await self._tasks.close()
        for work in tuple(self._works):
            work.stop(None)
        await self.agents.close()
        await self.wait_idle()
        await self.servers.close()

    # Starting

    async def _play(
        self,
        work: Job,
        writer: BlockWriter,
        presence: WriterPresence,
        asker: Asker,
        undecided: Sequence[ToolPermission],
    ) -> None:
        """Play a turn, or let it go on; whatever it fails with, everybody sees it."""
        model, prompt = work.model or "", work.prompt or ""
        try:
            settings = self._settings
            common = (writer, presence, prompt, asker, self.permissions)
            if self.is_agent(model):
                work.turn = agent_turn = AgentTurn(*common, settings)
                await self.agents.play(model, agent_turn)
                return
            answering = await self.models.open(model)
            # A call that waits for a decision already is one of a tool that was there.
            seconds = START_SECONDS if undecided else SERVER_SECONDS
            servers = await self._servers(answering.config, seconds)
            principal, context = writer.actor.principal, writer.context
            about = context, answering, principal.id, prompt, servers.tools
            reader = await self.reader(*about)
            asked = context.document.header(prompt).metadata.get(block_metadata.MAX_ROUNDS)
            if type(asked) is int and 1 <= asked < settings.max_rounds:
                settings = replace(settings, max_rounds=asked)
            work.turn = turn = Turn(*common, settings, answering, reader, servers)
            first, calls = resumed_calls(writer, undecided)
            try:
                await turn.play(calls, first)
            finally:
                await turn.tools.end()
        except TurnFailed as error:
            said, kind = str(error), error.kind
        except Exception as error:  # noqa: BLE001  whatever it is, everybody is to see it
            _log.exception("a turn of %s failed", model)
            why = error.message if isinstance(error, AntiphonError) else str(error)
            said, kind = f"The turn failed: {why or type(error).__name__}", ErrorKind.OTHER
        else:
            return
        role = self._kernel.members.role_of(writer.actor.principal)
        if role.may(Permission.WRITE):
            if isinstance(work.turn, Turn) and work.turn.blocks is not None:
                await work.turn.blocks.close_calls()
            await report_failure(writer, prompt, said, kind)
        else:  # it has been made a viewer meanwhile
            await self._refuse(writer.context, prompt, writer.actor.principal, role)

    async def reader(
        self,
        context: Context,
        model: AnsweringModel,
        principal: str,
        prompt: str | None = None,
        served: Sequence[McpTool] | None = None,
    ) -> PromptReader:
        """Return what reads a context for a model.

        Args:
            principal: id of the model's.
            prompt: the block that is answered; the last message if None.
            served: tools of MCP servers; those that are known if None.
        """
        system, tools = await self._instructions(context, model.config, prompt, served)
        most = self._settings.limits.budget
        return PromptReader(self._kernel, context, model, principal, prompt, system, tools, most)

    async def instruction_tokens(self, context: Context, model: str) -> int:
        """Return the estimate of what goes with every request to a model in a context."""
        config = self.models.configured(model, published=False)
        return instruction_tokens(*await self._instructions(context, config))

    async def _servers(self, config: ModelConfig, seconds: float) -> TurnServers:
        """Return the MCP servers of a turn; those that are not there soon are named."""
        names = tools_of(config)
        missing = await self.servers.ready(names, seconds)
        tools = self.servers.tools(names)
        return TurnServers(self.servers, self.questions, tools, tuple(missing))

    async def _instructions(
        self,
        context: Context,
        config: ModelConfig,
        prompt: str | None = None,
        served: Sequence[McpTool] | None = None,
    ) -> tuple[str, tuple[ToolDefinition, ...]]:
        instructions = await asyncio.to_thread(self._settings.instructions)
        names = tools_of(config)
        system = system_text(instructions, config.system, has_tools=names != ())
        served = self.servers.tools(names) if served is None else served
        tools = ModelTools(self._kernel, context, prompt, names, served=served)
        return system, tools.definitions

    async def answering(self, context: Context, author: str, text: str) -> list[str]:
        """Return the models that answer `text` again: its author if that is one, by principal id.

        Else it is a person's message, and those that it addresses answer.
        """
        model = await self.named(author)
        return [model] if model is not None else self._addressed(context, text)

    async def named(self, principal: str) -> str | None:
        """Return the name of the model that writes as a principal; None if there is none."""
        await self._register()
        return self._names.get(principal)

    @property
    def names(self) -> list[str]:
        """Return the names of all models and then of the agents, as messages call them."""
        return [*self.models, *(name for name in self.agents.configs if name not in self.models)]

    def is_agent(self, name: str) -> bool:
        """Return whether it is an agent that answers to a name."""
        return name not in self.models and name in self.agents.configs

    def default_model(self, context: Context) -> str | None:
        """Return the model that answers messages which name none; None if there is no model.

        An agent does only if it was chosen.
        """
        chosen = (context.document.default_model, self.models.config.context.default_model)
        known = (name for name in chosen if name is not None and name in self.names)
        return next(known, self.models.default)

    def _addressed(self, context: Context, text: str) -> list[str]:
        default, names = self.default_model(context), self.names
        named = [name for name in mentions(text) if name in names]
        return named or ([default] if default is not None else [])

    def works(self, context: Context) -> list[Job]:
        """Return what runs and waits in a context, in the order in which it was asked for."""
        return [work for work in self._works if work.context == context.id]

    def _latest(self, context: ContextId, model: str) -> Job | None:
        """Return the turn of a model behind which the next one in a context waits."""
        turns = (one for one in reversed(self._works) if one.prompt is not None)
        return next((one for one in turns if (one.context, one.model) == (context, model)), None)

    async def _resume(self, context: ContextId | None = None) -> None:
        """Let the turns go on, here or everywhere, whose calls waited when the kernel ended."""
        turns: dict[tuple[ContextId, str, str, str, int | None], list[ToolPermission]] = {}
        for one in tuple(self._kernel.tool_permissions.undecided.values()):
            if context not in (None, one.context) or one.call in self.permissions.waiting:
                continue
            model = await self.named(one.model)
            try:
                prompt = await self.permissions.prompt_of(one)
            except AntiphonError as error:
                _log.error("the call %s cannot be asked about again: %s", one.call, error)
                continue
            if model is None or prompt is None or self.is_agent(model):
                await self.permissions.abandon(one)
                continue
            asked = (one.context, model, prompt, one.asker, one.credential)
            turns.setdefault(asked, []).append(one)
        for (where, model, prompt, asker, credential), undecided in turns.items():
            opened = await self._kernel.context(where)
            principal = self._kernel.members.find(asker)
            role, now = self._kernel.members.role_of(principal), self._kernel.clock.now_ms()
            session = SessionId(self._kernel.ids.uuid7())
            sender = Actor(principal, session, role, "turn", now, credential)
            self.start_turn(opened, model, prompt, sender, undecided)

    def start_turn(
        self,
        context: Context,
        model: str,
        prompt: str,
        sender: Actor,
        undecided: Sequence[ToolPermission] = (),
    ) -> None:
        """Let a model answer the block `prompt` once its earlier turns here are over.

        Args:
            sender: who has sent the message. The turn's tools run with their rights, and when they
                have to go, its command ends; it does not begin if it still waits.
            undecided: calls that wait for people, with which the turn goes on.
        """
        before = self._latest(context.id, model)
        asker = Asker(self._kernel, sender, Permission.WRITE)
        work = Job(context.id, model, prompt, model, waiting=before is not None)

        async def play(writer: BlockWriter, presence: WriterPresence) -> None:
            try:
                if before is not None:
                    presence.wait_at(prompt)
                if await _may_begin(writer, prompt, before, asker):
                    principal = writer.actor.principal
                    role = self._kernel.members.role_of(principal)
                    if not role.may(Permission.WRITE):
                        await self._refuse(context, prompt, principal, role)
                        return
                    work.waiting = False
                    await self._play(work, writer, presence, asker, undecided)
            finally:
                for one in undecided:
                    await self.permissions.abandon(one)

        self._start(context, work, asker, self._let_write(context, work, play), f"turn of {model}")

    async def _let_write(self, context: Context, work: Job, write: _Write) -> None:
        """Let a model write in a context; what it leaves open is marked if it is stopped."""
        principal = await self.principal(work.model or "")
        work.username = principal.username
        actor = self._kernel.open_session(principal, VIA_TURN)
        work.session = actor.session
        self._kernel.sessions.on_dismissal(actor, lambda dismissal: work.stop(None))
        presence = WriterPresence(context, actor, self._kernel.ids.client_id())
        writer = BlockWriter(self._kernel, context, actor)
        try:
            await write(writer, presence)
        except asyncio.CancelledError:
            await _interrupted(writer, work)
            raise
        finally:
            presence.leave()
            await self._kernel.close_session(actor)

    def start_writing(self, context: Context, work: Job, asker: Asker, write: _Write) -> None:
        """Let a model write something that is no answer.

        Args:
            asker: who has asked for it; when they have to go, it is stopped.
            write: is cancelled to stop it.
        """
        doing = self._let_write(context, work, write)
        self._start(context, work, asker, doing, f"writing of {work.model}")
        self._kernel.sessions.on_dismissal(asker.session, lambda dismissal: work.stop(None))

    async def _refuse(
        self, context: Context, prompt: str, model: Principal, role: AccessRole
    ) -> None:
        """Say that a model may not answer; the model itself may not even write that."""
        message = (
            f"Not answered: {model.username} is {role.described()}, who reads and does not write."
            f" An owner can make it {AccessRole.AGENT.described()} again."
        )
        writer = BlockWriter(self._kernel, context, self._kernel.system)
        # Nobody else would end the block: the kernel's own session lasts.
        await run_uninterrupted(report_failure(writer, prompt, message))

    async def start_command(
        self, context: Context, caller: Actor, command: str
    ) -> tuple[Job, CallBlocks]:
        """Begin a shell command of a person; returns once its blocks are there."""
        work = Job(context.id, caller.principal.username)
        # The command outlives the connection that asked for it.
        asker = Asker(self._kernel, caller, Permission.OWN)
        opened: asyncio.Future[CallBlocks] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            writer = BlockWriter(self._kernel, context, asker.session)
            try:
                blocks = await writer.open_command(command)
                if not opened.done():
                    opened.set_result(blocks)
                await blocks.run_command(command, self._kernel.files.save_open)
            except asyncio.CancelledError:
                if asker.is_dismissed:
                    writer.actor = self._kernel.system
                    if opened.done() and not opened.cancelled():
                        ended = AskerDismissed(asker.standing(), has_begun=True)
                        message = ended.command_refusal("this is a command")
                        await opened.result().fail(message, stop_reason=INTERRUPTED)
                await _interrupted(writer, work)
                raise
            finally:
                await self._kernel.close_session(asker.session)

        self._start(context, work, asker, run(), f"command of {work.username}")
        self._kernel.sessions.on_dismissal(asker.session, lambda dismissal: work.stop(None))
        either: set[asyncio.Future[Any]] = {work.task, opened}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()
            if work.task.cancelled():
                raise AntiphonError(
                    ErrorCode.INVALID_TRANSITION,
                    "The command was stopped before it began: run it again.",
                )
            work.task.result()
        return work, opened.result()

    def _start(
        self,
        context: Context,
        work: Job,
        asker: Asker,
        doing: Coroutine[Any, Any, None],
        name: str,
    ) -> None:
        stop_using = context.users.add()
        work.task = self._turns.start(doing, name)
        self._works.append(work)

        def ended(_: object) -> None:
            self._works.remove(work)
            self._ended.append(work)
            work.turn = None
            stop_using()
            asker.close()

        work.task.add_done_callback(ended)

    def _opened(self, context: Context) -> None:
        if self._kernel.cluster is not None and not self.permissions.is_closing:
            self._tasks.start(self._resume(context.id), f"turns that go on in {context.label}")
        if context.is_partial or self.permissions.is_closing:
            return
        if (model := self.default_model(context)) is not None and model in self.models:
            name = f"reading {context.label} for {model}"
            task = self._tasks.start(self._read_ahead(context, model), name)
            stop_using = context.users.add()
            task.add_done_callback(lambda _: stop_using())

    def _left(self, context: Context) -> None:
        """End what is at work in a context that another kernel may have; it decides about calls."""
        for job in self.works(context):
            self._kernel.tool_permissions.leave(context.id)
            job.stop(None)

    async def _read_ahead(self, context: Context, model: str) -> None:
        """Read a context that a model may answer in, so that its first turn need not."""
        principal = await self.principal(model)
        names = tools_of(self.models.configured(model, published=False))
        tools = ModelTools(self._kernel, context, None, names)
        definitions = await asyncio.to_thread(lambda: tools.definitions)
        await layout_of(context).prepare(principal.id, is_plain=not definitions)

    async def _register(self) -> None:
        """Make every model and agent known by its name before it has said anything."""
        for name in self.names:
            await self.principal(name)

    async def principal(self, model: str) -> Principal:
        """The principal that a model or agent writes as: never a person who has the same name."""
        kind = PrincipalKind.AGENT if self.is_agent(model) else PrincipalKind.MODEL
        principal = await self._kernel.members.principal_of_kind(model, kind)
        self._names[principal.id] = model
        return principal

    def _submitted(self, sent: Submission) -> None:
        if sent.actor.principal.kind in ANSWERING_KINDS:  # models send nothing but drifts
            self._tasks.start(self._wake_for_model(sent), "waking for a drift")
        else:
            self._wake(sent)

    def _wake(self, sent: Submission) -> None:
        for model in self._addressed(sent.context, sent.text):
            self.start_turn(sent.context, model, sent.block, sent.actor)

    async def _wake_for_model(self, drift: Submission) -> None:
        """Start turns for whoever asked the model that has made a drift, if it may wake others."""
        kernel, target, sender = self._kernel, drift.context, drift.actor
        row = kernel.drifts[drift_id(target.document.header(drift.block).metadata) or ""]
        from_context = kernel.contexts.of_number(row.source).id
        turn = next((one.turn for one in self._works if one.session == sender.session), None)
        if turn is not None:
            # What it sets off is known by the context that it answers in.
            if turn.writer.context.id != from_context:
                return
            sender = turn.asker.session
        source = await kernel.context(from_context)
        wrote = max(person_wrote(source.document), person_wrote(target.document))
        later = [
            one
            for one in kernel.drifts.rows()
            if one.seq
            and one.time >= wrote
            and kernel.members.find(one.principal).kind in ANSWERING_KINDS
        ]
        if may_wake(row, later):
            self._wake(replace(drift, actor=sender))

    async def _autostart(self) -> None:
        context = await self._kernel.context()
        await _wait_for_human(context)
        await self._settings.sleep(AUTO_PLAY_SECONDS)
        document = context.document
        if any(document.header(block).role == Role.MODEL for block in document.block_ids()):
            return
        due = [model for model in self.models if self._latest(context.id, model) is None]
        if not due:
            return
        system = self._kernel.system
        ids = document.block_ids()
        by_kernel = (one for one in ids if document.header(one).author == system.principal.id)
        prompt = next(by_kernel, None)
        if prompt is None:
            said = {"kind": BlockKind.TEXT, "content": self.models.opening, "status": "done"}
            made = await self._kernel.call(system, "block.create", {"context": context.id, **said})
            prompt = str(made["block_id"])
        for model in due:
            self.start_turn(context, model, prompt, system)

    # Stopping

    async def interrupt(
        self,
        context: Context,
        principal: str | None,
        by: Principal,
        message: str | None = None,
    ) -> list[str]:
        """Stop what runs in a context or has edited its file; turns that wait come next.

        Args:
            principal: whose; all if None.
            message: stop the turns that answer this block, those that wait too, and nothing else.

        Returns the usernames of those that were stopped, once nothing of them runs any more.

        Raises:
            AntiphonError: invalid_params or ambiguous_id if there is no such principal.
        """
        await self._register()
        members = self._kernel.members
        whose = None if principal is None else (await members.look_up(principal)).username
        due = [
            work
            for work in self._works
            if (work.context == context.id or self._kernel.writers.edits(work.session, context.id))
            and (not work.waiting if message is None else work.prompt == message)
            and whose in (None, work.username)
        ]
        for work in due:
            work.stop(by.username)
        for work in due:
            await asyncio.wait({work.task})
        stopped = {work.username for work in due}
        if message is None:
            stopped |= self._kernel.writers.stop(context, whose, by.username)
        await context.wait_persisted()
        return sorted(stopped)


_runners: WeakValueDictionary[int, TurnRunner] = WeakValueDictionary()
"""By the identity of the kernel, which lives as long as its runner: another that is opened from the
same files has none of this one's models."""


def find_runner(kernel: Kernel) -> TurnRunner | None:
    """Return the runner of a kernel; None of one on which no models run."""
    return _runners.get(id(kernel))


def runner_of(kernel: Kernel) -> TurnRunner:
    """Return the runner of a kernel on which models run."""
    return _runners[id(kernel)]


async def _may_begin(writer: BlockWriter, prompt: str, before: Job | None, asker: Asker) -> bool:
    """Wait until the turn before is over; whether this one may begin.

    If its asker has to go meanwhile, everybody is told at once; the next one waits on.
    """

    async def come_next() -> None:
        if before is not None:
            await asyncio.wait({before.task})

    try:
        await asker.run(Permission.WRITE, come_next)
    except AskerDismissed as error:
        await report_failure(writer, prompt, f"Not answered: this is a message of {error.asker}.")
        await come_next()
        return False
    return True


async def _interrupted(writer: BlockWriter, work: Job) -> None:
    try:
        writer.kernel.sessions.check(writer.actor)
        writer.context.raise_if_stopped()
    except AntiphonError:
        return  # nothing more is taken, and the end of the session marks what it leaves
    await writer.finish_all(Status.ERROR, stop_reason=INTERRUPTED, stopped_by=work.stopped_by)


async def _wait_for_human(context: Context) -> None:
    """Wait until a person is present."""
    came = asyncio.Event()

    def look(client: int, state: PresenceState | None) -> None:
        if state is not None and state.kind == PrincipalKind.HUMAN:
            came.set()

    unwatch = context.presence.changed.listen(look)
    for client, state in context.presence.states().items():
        look(client, state)
    try:
        await came.wait()
    finally:
        unwatch()


def may_wake(drift: DriftRow, later: Collection[DriftRow]) -> bool:
    """Return whether a model's drift may wake the models of its target.

    Nobody is woken by what they have set off: it may not if drifts of models have led from there
    to here, over whatever contexts. So each drift that wakes leads on to where none has come from,
    and all come to rest when people write no more.

    Args:
        later: the drifts of models since a person last wrote in one of the two contexts.
    """
    reached, new = set[int](), {drift.target}
    while new:
        reached |= new
        new = {one.target for one in later if one.source in new} - reached
    return drift.source not in reached


def person_wrote(document: Document) -> int:
    """Return when a person wrote the last block of theirs, in milliseconds; 0 if there is none."""
    members = document.members()
    people = {one.principal for one in members if one.kind == PrincipalKind.HUMAN}
    for block in reversed(document.block_ids()):
        header = document.header(block)
        if header.author in people and not (header.is_draft or is_drifted(header.metadata)):
            return moment_or_start(header.created)
    return 0
