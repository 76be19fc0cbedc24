"""Permission for the tool calls of models: asked of people where the policy says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from antiphon_kernel.access import canonical_arguments, check_decide
from antiphon_kernel.contexts import Applied, Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers import PermissionPolicy, ToolPermit
from antiphon_kernel.storage import ToolPermission
from antiphon_kernel.tasks import run_uninterrupted
from antiphon_kernel.turns.asker import Asker, AskerDismissed
from antiphon_kernel.turns.block_writer import SHELL
from antiphon_kernel.types.constants import DEFAULT_CONTEXT, INTERRUPTED
from antiphon_kernel.types.enums import ANSWERING_KINDS, CallPermission, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, kernel_is_closing
from antiphon_kernel.types.records import Actor, BlockHeader, Principal
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.types.signal import News

_DEFINED: Final = "@"
"""Between a tool and the hash of its definition, where a decision about it is stored."""


def tool_of(stored: ToolPermission) -> str:
    """Return the name of the tool for models that a decision is about."""
    return stored.tool.partition(_DEFINED)[0]


@dataclass(eq=False, slots=True)
class PermissionRequest:
    """A call that a model wants to be run, whose block is there and pending."""

    context: Context
    call_block: str
    model: str
    """Id of the model's principal."""
    tool: str
    """Name of the tool for models."""
    arguments: Mapping[str, Any]
    """Arguments, valid for the tool's schema."""
    asker: Asker
    """Author of the message that is answered: the call has their rights, and they may decide."""
    changes: Collection[str] = ()
    """Paths of the files that it changes or makes, without links."""
    shown: str = ""
    """The difference that it makes in files, as people see it."""
    choices: Collection[CallPermission] | None = None
    """Decisions that an agent offers, which keeps rules by itself and may go on with the call's
    block; None: all, and `always` makes a rule."""
    definition: str = ""
    """Hash of the definition of a tool that a server may change."""
    decided: asyncio.Future[str | None] = field(default_factory=asyncio.Future)
    """The reason of a refusal; None if it may run."""
    withdrawn: ToolPermission | None = None
    """The request as it was stored, once nobody may decide about it any more."""

    @property
    def approved(self) -> str:
        """Return the name of what is approved: of the tool, in a definition that can change."""
        return f"{self.tool}{_DEFINED}{self.definition}" if self.definition else self.tool


_CHANGED: Final = "It was changed or hidden while it waited for a person's decision."
_NOT_STORED: Final = "A person's decision about it could not be stored."


class PermissionDesk:
    """Decides by the policy whether a call may run, and asks people where it says so."""

    def __init__(self, kernel: Kernel, policy_of: Callable[[str], PermissionPolicy]) -> None:
        """`policy_of` gives the policy of a model by its principal's id."""
        self._kernel = kernel
        self._stored = kernel.tool_permissions
        self._policy_of = policy_of
        self.waiting: dict[str, PermissionRequest] = {}
        """Calls that turns wait for, by block."""
        self.is_closing = False
        self._changed = News()
        """Announced when a turn begins to wait, or a call waits no longer."""

    def close(self) -> None:
        """Keep what is undecided: the turns end with the process, the calls still wait."""
        self.is_closing = True
        self._changed.announce()

    # Turns

    async def decide(self, request: PermissionRequest) -> str | None:
        """Return why a call may not run, as the model is told it; None if it may.

        Waits for a person where one has to decide. When cancelled, the request is withdrawn:
        nobody can decide it any more.
        """
        stored = self._stored.undecided.get(request.call_block)
        if stored is not None:  # asked before the kernel was started again
            wanted = (request.approved, canonical_arguments(request.arguments))
            if (stored.tool, stored.arguments) == wanted:
                return await self._wait(request)
            await self.abandon(stored)
            return _CHANGED
        permit = await self.permit(request)
        if permit is ToolPermit.DENY:
            return f"The policy of this kernel denies {request.tool} to this model."
        if permit is ToolPermit.ALLOW:
            return None
        rule = self._rule_for(request)
        if rule is None:
            return await self._wait(request)
        by = self._kernel.members.find(str(rule.decided_by))
        self._note(
            request.context,
            self._kernel.system,
            request.call_block,
            permission=CallPermission.ALWAYS,
            runs_for=request.asker.session.principal.username,
            decided_by=by.username,
        )
        return None

    async def permit(self, request: PermissionRequest) -> ToolPermit:
        """Return what the policy says of a call; no block is needed for that."""
        policy = self._policy_of(request.model)
        permit = policy.permit(request.tool)
        if permit is None:
            harmless = await is_harmless(
                self._kernel, request.context.id, request.tool, request.arguments
            )
            permit = ToolPermit.ALLOW if harmless else ToolPermit.ASK
        if permit is ToolPermit.ASK and request.tool == SHELL:
            command = request.arguments.get("command")
            if isinstance(command, str) and policy.allows_command(command):
                return ToolPermit.ALLOW
        if permit is ToolPermit.ASK and request.changes:
            if all(map(policy.allows_file, request.changes)):
                return ToolPermit.ALLOW
        return permit

    def denies_file(self, principal: Principal, path: str) -> bool:
        """Return whether somebody is a model whose policy lets it see nothing of a file."""
        if principal.kind not in ANSWERING_KINDS:
            return False
        return self._policy_of(principal.id).denies_file(path)

    def _rule_for(self, request: PermissionRequest) -> ToolPermission | None:
        """Return the rule that allows a call; whoever made it may still decide about this one."""
        wanted = (request.context.id, request.model, request.approved)
        arguments = canonical_arguments(request.arguments)
        asker = request.asker.session.principal
        for rule in self._stored.rules.values():
            if (rule.context, rule.model, rule.tool) != wanted or rule.arguments != arguments:
                continue
            by = self._kernel.members.find(str(rule.decided_by))
            is_here = self._kernel.members.banned_until(by) is None
            if is_here and self.may_decide(by, asker.id, request.tool):
                return rule
        return None

    async def _wait(self, request: PermissionRequest) -> str | None:
        """Wait for a person's decision, as long as the call could run for whoever prompted it."""
        context, needs = request.context, self.needs(request.tool)
        unlisten = context.applied.listen(partial(self._look, request))
        try:
            return await request.asker.run(needs, partial(self._ask, request))
        except AskerDismissed as error:
            self._withdraw(request)
            return (
                f"This turn answers a message of {error.asker}, and the call takes the right to"
                f" {needs}."
            )
        except asyncio.CancelledError:
            if not self.is_closing:
                self._withdraw(request)
            raise
        finally:
            unlisten()
            self.waiting.pop(request.call_block, None)
            if request.withdrawn is not None:
                await run_uninterrupted(self._forget(context, request.withdrawn))

    async def prompt_of(self, stored: ToolPermission) -> str | None:
        """Return the block that is answered by a call that waits; None if it cannot go on.

        Raises:
            AntiphonError: storage_failed if its context cannot be read.
        """
        context = await self._kernel.context(stored.context)
        if stored.call not in context.document:
            return None
        header, asker = context.document.header(stored.call), stored.asker
        if not header.is_undecided:
            return None
        try:
            principal = self._kernel.members.find(asker)
            self._kernel.access.check_return(principal, stored.credential)
        except AntiphonError:
            return None
        return header.parent if header.parent in context.document else None

    async def abandon(self, stored: ToolPermission) -> None:
        """Withdraw a call that was asked about before the kernel was started again, and end it."""
        is_here = self._kernel.owns(self._kernel.contexts[stored.context])
        if self.is_closing or not is_here or self._stored.undecided.pop(stored.call, None) is None:
            return
        self._changed.announce()
        context = await self._kernel.context(stored.context)
        await run_uninterrupted(self._forget(context, stored))
        call, document = stored.call, context.document
        if call in document and not Status(document.header(call).status).terminal:
            fields = {"block_id": stored.call, "status": Status.ERROR, "stop_reason": INTERRUPTED}
            await self._kernel.call(self._kernel.system, "block.status", fields)

    async def _ask(self, request: PermissionRequest) -> str | None:
        """Ask for a decision, where everybody sees it, and return it."""
        context, asker = request.context, request.asker.session
        if request.call_block not in self._stored.undecided:
            await run_uninterrupted(
                self._stored.ask(
                    context.id,
                    request.call_block,
                    self._kernel.members.find(request.model).id,
                    request.approved,
                    request.arguments,
                    asker,
                )
            )
        if request.shown and context.document.text(request.call_block) != request.shown:
            self._withdraw(request)
            return _CHANGED
        self.waiting[request.call_block] = request
        self._changed.announce()
        if context.document.header(request.call_block).permission != CallPermission.ASKED:
            self._note(
                context,
                self._kernel.system,
                request.call_block,
                permission=CallPermission.ASKED,
                runs_for=asker.principal.username,
            )
        return await request.decided

    def _look(self, request: PermissionRequest, applied: Applied) -> None:
        """Withdraw a call that is no longer what people were shown."""
        call = request.call_block
        if call not in self.waiting or call not in applied.versions:
            return
        header = request.context.document.header(call)
        changes = (one.block for change in applied.changes for one in change.texts)
        may_go_on = request.choices is not None and applied.actor.principal.id == request.model
        is_changed = call in changes and not may_go_on
        if is_changed or header.excluded or Status(header.status).terminal:
            self._withdraw(request)
            if not request.decided.done():
                request.decided.set_result(_CHANGED)

    def _withdraw(self, request: PermissionRequest) -> None:
        """Let nobody decide any more, from this moment on."""
        taken = self._stored.undecided.pop(request.call_block, None)
        request.withdrawn = taken or request.withdrawn

    async def _forget(self, context: Context, withdrawn: ToolPermission) -> None:
        await self._stored.forget(withdrawn)
        call, document = withdrawn.call, context.document
        if call in document and document.header(call).permission == CallPermission.ASKED:
            self._note(context, self._kernel.system, call, permission=CallPermission.WITHDRAWN)

    def _note(self, context: Context, by: Actor, call: str, **fields: str) -> asyncio.Future[None]:
        """Write into a call's header what was decided, and in the journal by whom.

        Raises:
            AntiphonError: permission_denied if `by` may not write; storage_failed.
        """
        operation = f"permission: {fields['permission']}"
        return context.set_fields(by, operation, call, fields).on_disk

    # People

    def needs(self, tool: str) -> Permission:
        """Return the right without which a tool for models does nothing."""
        name = registry_name(tool)
        if tool == SHELL or name not in self._kernel.registry.names:
            return Permission.OWN
        return self._kernel.registry[name].needs

    def may_decide(self, principal: Principal, asker: str, tool: str) -> bool:
        """Return whether somebody may decide about a call that has the rights of `asker`."""
        try:
            self._check_decide(principal, asker, tool)
        except AntiphonError:
            return False
        return True

    def _check_decide(self, principal: Principal, asker: str, tool: str) -> None:
        role = self._kernel.members.role_of(principal)
        check_decide(self._kernel.members.find(asker).id, self.needs(tool), principal, role)

    async def settle(
        self, context: Context, call: str, by: Actor, permission: CallPermission, reason: str = ""
    ) -> None:
        """Decide about a call on behalf of a person. The first decision counts.

        Args:
            permission: `once`, `always` or `denied`.
            reason: of a refusal, as the model is told it.

        Raises:
            AntiphonError: invalid_transition if the call does not wait for a decision;
                permission_denied; storage_failed.
        """
        while call in self._stored.undecided and call not in self.waiting:
            # The kernel was started a moment ago, and the turn is about to go on.
            if self.is_closing:
                raise kernel_is_closing()
            await self._changed.wait()
        waiting, stored = self.waiting.get(call), self._stored.undecided.get(call)
        if waiting is None or stored is None:
            raise _not_asked(call, context.document.header(call))
        self._check_decide(by.principal, stored.asker, stored.tool)
        if waiting.choices is not None and permission not in waiting.choices:
            raise invalid_params(
                f"The agent does not offer {permission} for this call: choose what it offers.",
                field="decision",
            )
        who = by.principal.username
        # Up to here, and to the end of `take`, nobody else is at work: there is one decision.
        on_disk = self._note(context, by, call, permission=permission, decided_by=who)
        self._stored.undecided.pop(call, None)
        refusal = None
        if permission is CallPermission.DENIED:
            refusal = f"{who} said no: {reason}" if reason else f"{who} said no."

        async def carry_out() -> None:
            """Let the turn go on once the decision is on disk."""
            outcome: str | None = _NOT_STORED
            try:
                await asyncio.shield(on_disk)
                if permission is CallPermission.ALWAYS and waiting.choices is None:
                    await self._stored.allow_always(stored, by.principal.id)
                else:
                    await self._stored.forget(stored)
                outcome = refusal
            finally:
                if not waiting.decided.done():
                    waiting.decided.set_result(outcome)

        await run_uninterrupted(carry_out())

    async def revoke(self, rule: ToolPermission, by: Actor) -> None:
        """End a rule on behalf of a person.

        Raises:
            AntiphonError: permission_denied; storage_failed.
        """
        if rule.decided_by != by.principal.id:
            self._check_decide(by.principal, rule.asker, rule.tool)
        context = await self._kernel.context(rule.context)
        if rule.call in context.document:
            who = by.principal.username
            on_disk = self._note(
                context, by, rule.call, permission=CallPermission.REVOKED, decided_by=who
            )
            await asyncio.shield(on_disk)
        await run_uninterrupted(self._stored.forget(rule))


def _not_asked(call: str, header: BlockHeader) -> AntiphonError:
    match header.permission:
        case CallPermission.ONCE | CallPermission.ALWAYS | CallPermission.DENIED:
            what = {"denied": "denied it"}.get(header.permission, f"allowed it {header.permission}")
            said = f"{header.decided_by} has {what} already"
        case CallPermission.ASKED | CallPermission.WITHDRAWN | CallPermission.REVOKED:
            said = "the turn has ended, or the call was changed or hidden"
        case _:
            said = "nobody was asked about it"
    return AntiphonError(
        ErrorCode.INVALID_TRANSITION,
        f"Block {call} waits for no decision: {said}. permission.list names the calls that wait.",
        status=str(header.permission or header.status),
    )


OWN_NAMES: Final = {"file.patch": "apply_patch"}
"""Tools of the registry that models know by another name than all others."""


def registry_name(tool: str) -> str:
    """Return the name that a tool for models has in the registry, if it is there."""
    renamed = (name for name, own in OWN_NAMES.items() if own == tool)
    return next(renamed, tool.replace("_", ".", 1))


_GROUPS: Final = frozenset({"block", "source"})
"""Groups of tools that work on a context, and may also write there without being asked about."""

_NOT_HERE: Final = frozenset({"block.attach"})
"""Tools that read files of the kernel's host."""

_BLOCKS: Final = frozenset(
    {"block_id", "parent_id", "after", "before", "after_block", "message", "parent", "summary"}
)
"""Parameters that name a block by a reference, wherever they are strings."""

_CONTEXT: Final = "context"


async def is_harmless(
    kernel: Kernel, context_id: str, tool: str, arguments: Mapping[str, Any]
) -> bool:
    """Return whether a call reads files, or reads or writes blocks in one context only.

    Args:
        tool: name of the tool for models.
    """
    name = registry_name(tool)
    if name not in kernel.registry.names or name in _NOT_HERE:
        return False
    found = kernel.registry[name]
    reads, group = found.needs is Permission.READ, name.partition(".")[0]
    if not reads and group not in _GROUPS:
        return False
    if reads and group == "file":
        return True
    takes = found.params.model_fields.keys()

    def may(context: Context) -> bool:
        is_file = kernel.files.path_of(context.id) is not None
        return context.id == context_id or (reads and is_file)

    references = [
        value
        for key, value in arguments.items()
        if key in _BLOCKS and key in takes and isinstance(value, str)
    ]
    stated = arguments.get(_CONTEXT)
    if _CONTEXT not in takes and not references:
        return False
    if _CONTEXT in takes and (stated is not None or not references):
        with suppress(AntiphonError):  # the tool says so
            if not may(await kernel.context(str(stated or DEFAULT_CONTEXT))):
                return False
    for reference in references:
        with suppress(AntiphonError):  # the tool says so
            if not may((await kernel.find_block(reference))[0]):
                return False
    return True
