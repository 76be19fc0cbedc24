"""Calls that the person makes to the kernel, and the display of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.headings import first_line
from antiphon.render.timeline import HistoryStep, Timeline, TimelineText
from antiphon.running_blocks import InterruptTarget
from antiphon.session import Session
from antiphon.time_format import format_time_since
from antiphon.widgets.block_list import MessageLocation, Siblings
from antiphon.widgets.sidebar import ContextName
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import is_text
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

STEPS_KEPT: Final = 20_000
"""Changes of a context whose history is shown, the latest ones."""

STEPS_A_CALL: Final = 1_000

_NO_HISTORY: Final = "The history cannot be read"

NOBODY = "No model here to answer: `antiphon demo` shows one; !command runs in the shell."
NOBODY_FOR_GUESTS = "No model is here to answer: whoever shares this sets one up, on their machine."


@dataclass(frozen=True, slots=True)
class ModelsHere:
    """The models that answer in a context, and what has been used of the default one."""

    names: tuple[str, ...] = ()
    default: str | None = None
    """The model that answers messages which name none."""
    tokens: int = 0
    """Estimate of what it reads with each request."""
    window: int | None = None
    """Tokens that it takes, where that is known."""
    cost: float = 0.0
    """US dollars that have been paid for all models in this context."""

    @property
    def use(self) -> str:
        """Return its use for the header: `12k/200k tokens · $0.03`; empty if no window is known."""
        if self.window is None:
            return ""
        share = f"{_count(self.tokens)}/{_count(self.window)} tokens"
        return f"{share} · ${self.cost:.2f}" if self.cost else share


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A person or a program that the kernel knows; several times who is here over SSH as often."""

    principal: str
    name: str
    kind: str
    role: str
    via: str = ""
    """Way by which it is here; empty if it is away."""
    since: str = ""
    """ISO 8601, UTC; empty if it is away."""
    barred_until: str = ""
    """Time until which it is kept out; empty if it is not."""
    session: str = ""
    """Id of the session over SSH that this is; empty if it is every connection."""

    @property
    def key(self) -> str:
        """By which it is told from others."""
        return self.session or self.principal

    @classmethod
    def all_of(cls, told: Mapping[str, Any]) -> Iterator[KnownMember]:
        """Return a member as `kernel.members` tells of it, once for each session over SSH."""
        plain = cls(
            told["principal"],
            displayable_in_a_row(told["username"]),
            told["kind"],
            told["role"],
            barred_until=told.get("barred_until", ""),
        )
        others = [one for one in told["sessions"] if one["via"] != "ssh"]
        over_ssh = [one for one in told["sessions"] if one["via"] == "ssh" and "within" not in one]
        for one in over_ssh:
            yield replace(plain, via="ssh", since=one["since"], session=one["session"])
        if others:
            first = min(others, key=lambda one: one["since"])
            yield replace(plain, via=first["via"], since=first["since"])
        elif not over_ssh:
            yield plain


@dataclass(frozen=True, slots=True)
class KnownKey:
    """An SSH key that lets somebody in."""

    fingerprint: str
    owner: str
    """Name of the person whom the key lets in."""
    added: str
    """ISO 8601, UTC."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> KnownKey:
        """Return a key as `key.list` tells of it."""
        return cls(told["fingerprint"], displayable_in_a_row(told["username"]), told["added"])


def _step(one: Mapping[str, Any], block: str | None) -> HistoryStep:
    """Return a change as the history of a block, or of a context, tells of it."""
    version = one["version"] if block is None else one["context_version"]
    blocks = one["blocks"] if block is None else {block: one["version"]}
    who = one["principal"], displayable_in_a_row(one["username"])
    return HistoryStep(version, one["time"], *who, one["operation"], blocks)


def _count(tokens: int) -> str:
    """Return a number of tokens in few characters; one below 10,000 as it is."""
    if tokens < 10_000:
        return f"{tokens:,}"
    return f"{tokens / 1e3:.0f}k" if tokens < 999_500 else f"{tokens / 1e6:.1f}M"


_NOTHING_LEFT: Mapping[str, str] = {
    ErrorCode.NOTHING_TO_UNDO: "You have nothing to undo in this cell.",
    ErrorCode.NOTHING_TO_REDO: "You have nothing to redo in this cell.",
}


@dataclass(frozen=True, slots=True)
class UndoneText:
    """Text that an undo or a redo removes and restores."""

    removed: str
    """How much, in words: `88 lines`; empty if nothing."""
    restored: str
    age: str
    """How long ago it was written: `10 s ago`."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> UndoneText:
        """Read the result of `block.undo` or `block.redo`."""
        age = format_time_since(result["time"])
        return cls(_amount(result["removed"]), _amount(result["restored"]), age)

    @property
    def amount(self) -> str:
        return self.removed or self.restored or "an edit"

    def report(self, name: str | None, place: str = "") -> str:
        """Say what an undo did; `name` is the author if it was somebody else's edit."""
        whose = (f" of {name}" if name is not None else "") + place
        them = "it" if self.amount.startswith(("1 ", "an ")) else "them"
        if self.restored and not self.removed:
            return f"Brought back {self.amount}{whose} · <key:redo> removes {them} again"
        return f"Took back {self.amount}{whose} · <key:redo> brings {them} back"

    def report_again(self, place: str) -> str:
        if self.removed and not self.restored:
            return f"Removed {self.removed}{place} again"
        return f"Brought back {self.restored or self.amount}{place}"


def _location(result: Mapping[str, Any]) -> MessageLocation:
    return MessageLocation(result["context_id"], result["message_id"])


def _amount(size: Mapping[str, int]) -> str:
    """Return the size of a text in the largest unit of which it has several."""
    for unit in ("lines", "words"):
        if size[unit] > 1:
            return f"{size[unit]:,} {unit}"
    if size["words"]:
        return "1 word"
    characters = size["characters"]
    return f"{characters} character{'s' * (characters > 1)}" if characters else ""


class KernelActions:
    """Calls whose failure is a hint, never an exception."""

    def __init__(self, session: Session, hint: Callable[[str], None]) -> None:
        self._session = session
        self._hint = hint
        self.nobody = NOBODY_FOR_GUESTS if session.is_guest else NOBODY
        """One line for who has written a message that no model answers."""

    async def call(
        self, tool: str, params: Mapping[str, Any], failed: str = ""
    ) -> Mapping[str, Any] | None:
        """Return the answer of a tool; None, with a hint that begins with `failed`, if it fails."""
        try:
            return await self._session.call(tool, params)
        except AntiphonError as error:
            self._hint(f"{failed}: {error.message}" if failed else error.message)
            return None

    async def undo(
        self, block: str, place: str = "", *, principal: str | None = None, name: str | None = None
    ) -> bool:
        """Take back the last edit of a block, and say so; whether anything changed.

        It is that of a principal with this name, else the person's own; `place` is the cell.
        """
        undone = await self.apply_undo("block.undo", block, principal, name)
        if undone is not None:
            self._hint(undone.report(name, place))
        return undone is not None

    async def redo(
        self, block: str, place: str = "", *, principal: str | None = None, name: str | None = None
    ) -> None:
        """Do again what was undone last, and say so; arguments as of `undo`."""
        redone = await self.apply_undo("block.redo", block, principal, name)
        if redone is not None and name is not None:
            self._hint(f"{redone.restored or redone.amount} of {name} came back.")
        elif redone is not None:
            self._hint(redone.report_again(place))

    async def apply_undo(
        self,
        tool: str,
        block: str,
        principal: str | None = None,
        name: str | None = None,
        *,
        preview: bool = False,
    ) -> UndoneText | None:
        """Return what a tool takes back, or would with `preview`; None, with a hint, if nothing."""
        what = tool.removeprefix("block.")
        params: dict[str, Any] = {"block_id": block, "preview": preview}
        if principal is not None:
            params["principal"] = principal
        try:
            return UndoneText.of(await self._session.call(tool, params))
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                self._hint(f"Offline: {what} needs the kernel; try again when it is back.")
            elif error.code in _NOTHING_LEFT and name is not None:
                self._hint(f"There is nothing of {name} to {what} in this cell.")
            else:
                self._hint(_NOTHING_LEFT.get(error.code, error.message))
            return None

    async def authors(self, block: str) -> Sequence[Mapping[str, Any]] | None:
        """Return the runs of a block's text by author; None if the kernel does not say."""
        if not is_text(self._session.document.schema(block)):
            return []
        failed = "Who wrote what cannot be shown"
        result = await self.call("block.blame", {"block_id": block}, failed)
        return None if result is None else result["runs"]

    async def layout(self, model: str | None, last: int) -> Mapping[str, Any] | None:
        """Return the last items that a model reads of this context; None if it is not said."""
        params: dict[str, Any] = {"context": self._session.document.context, "last": last}
        if model is not None:
            params["model"] = model
        return await self.call("context.layout", params, "What models read cannot be shown")

    async def interrupt(self, target: InterruptTarget) -> None:
        params: dict[str, Any] = {"context": self._session.document.context}
        if target.principal is not None:
            params["principal"] = target.principal
        result = await self.call("turn.interrupt", params, "Not stopped")
        if result is not None and not result.get("stopped"):
            self._hint("Nothing is running. <key:quit> quits.")

    async def decide(self, block: str, decision: str, reason: str = "") -> bool:
        """Decide about a call that waits: `once`, `always` or `no`; whether that was possible."""
        params = {"block_id": block, "decision": decision}
        if reason:
            params["reason"] = reason
        return await self.call("permission.decide", params, "Not decided") is not None

    async def branches(self) -> Mapping[tuple[str, ...], Siblings] | None:
        """Return the siblings of each message that has some, by its blocks; None if not said."""
        params = {"context": self._session.document.context}
        result = await self.call("message.branches", params, "The branches cannot be listed")
        if result is None:
            return None
        return {
            tuple(one["blocks"]): Siblings(one["position"], tuple(map(_location, one["siblings"])))
            for one in result["messages"]
        }

    async def edit_message(self, block: str, text: str) -> MessageLocation | None:
        """Give a message another text, in a branch if something follows it; None if refused."""
        edited = await self.call("message.edit", {"message": block, "content": text}, "Not sent")
        return None if edited is None else _location(edited)

    async def start_turn(self, block: str) -> MessageLocation | None:
        """Have a message, or what an answer answers, answered again; None if nobody answers."""
        result = await self.call("turn.start", {"message": block}, "Not answered")
        if result is not None and not result["models"]:
            self._hint(self.nobody)
            return None
        return None if result is None else _location(result)

    async def retry_turn(self, block: str) -> bool:
        """Let a turn go on that has ended with an error; whether it does."""
        result = await self.call("turn.retry", {"message": block}, "Not asked again")
        if result is not None and result.get("model") is None:
            self._hint(self.nobody)
        return result is not None and result.get("model") is not None

    async def steps(self, block: str | None) -> Sequence[HistoryStep] | None:
        """Return the changes of a block, or the latest ones of the context; None if not said."""
        document, found = self._session.document, list[HistoryStep]()
        tool, params = "block.history", {"block_id": block, "limit": STEPS_A_CALL}
        if block is None:
            params = {"context": document.context, "last": STEPS_KEPT, "limit": STEPS_A_CALL}
            tool = "context.history"
        after: int | None = 0
        while after is not None:
            page = await self.call(tool, {**params, "after_version": after}, _NO_HISTORY)
            if page is None:
                return None
            found += (_step(one, block) for one in page["versions"])
            after = page.get("next")
        return found

    async def timeline(self, block: str) -> Timeline | None:
        """Return everything that a block's text has held; None if the kernel does not say."""
        document = self._session.document
        if not is_text(document.schema(block)):
            # Structured content is shown as it is now.
            now = TimelineText(render(document, block), document.header(block).author, 1)
            return Timeline((now,), 1)
        result = await self.call("block.timeline", {"block_id": block}, _NO_HISTORY)
        if result is None:
            return None
        texts = (
            TimelineText(one["text"], one["principal"], one["since"], one.get("until"))
            for one in result["texts"]
        )
        return Timeline(tuple(texts), result["version"])

    async def fork(self, context: str | None, at: int | None = None) -> str | None:
        """Copy a context, as it was at a version; return the copy's id, None if refused."""
        params: dict[str, Any] = {"context": context}
        if at is not None:
            params["at"] = at
        made = await self.call("context.fork", params, "Not forked")
        return None if made is None else str(made["context_id"])

    async def create_context(self, label: str) -> str | None:
        """Make a context; return its id, None if refused."""
        made = await self.call("context.create", {"label": label}, "Not made")
        return None if made is None else str(made["context_id"])

    async def rename_context(
        self, label: str, context: str | None = None
    ) -> Mapping[str, Any] | None:
        """Give a context another label, this one if none is named; None if refused."""
        params = {"context": context or self._session.document.context, "label": label}
        return await self.call("context.rename", params, "Not renamed")

    async def last_words(self, context: str) -> str:
        """Return the first line of the text that was written last in a context, if there is any."""
        try:
            page = await self._session.call("context.page", {"context": context})
        except AntiphonError as error:
            return f"cannot be opened: {error.message}"
        for block in reversed(page["blocks"]):
            if block["kind"] == BlockKind.TEXT and (text := block["content"].strip()):
                return first_line(text)
        return ""

    async def name(self) -> str | None:
        """Return what people call the kernel: its project's name unless it has another one."""
        found = await self.call("kernel.info", {}, "The kernel does not say its name")
        return None if found is None else displayable_in_a_row(found["label"])

    async def members(self) -> Sequence[KnownMember]:
        """Return the people and programs that the kernel knows; first those who are here."""
        found = await self.call("kernel.members", {}, "The people cannot be listed")
        told = [] if found is None else found["members"]
        members = (one for each in told for one in KnownMember.all_of(each))
        here = [one for one in members if one.kind != PrincipalKind.SYSTEM]
        return sorted(here, key=lambda one: (not one.since, one.name, one.since))

    async def keys(self) -> Sequence[KnownKey]:
        found = await self.call("key.list", {}, "The keys cannot be listed")
        told = [] if found is None else found["keys"]
        return [KnownKey.of(one) for one in told if one["state"] == "good"]

    async def revoke(self, key: KnownKey) -> bool:
        """Take back a key, and end what came in with it; whether that was done."""
        params = {"fingerprint": key.fingerprint}
        return await self.call("key.revoke", params, "Not revoked") is not None

    async def invite(self, role: str) -> str | None:
        """Make an invitation for a day; return the command that joins, None if refused."""
        made = await self.call("kernel.invite", {"role": role}, "Not invited")
        return None if made is None else str(made.get("join") or made["token"])

    async def choose_model(self, name: str) -> bool:
        """Let a model answer the messages in this context that name none; whether it does."""
        params = {"context": self._session.document.context, "model": name}
        is_chosen = await self.call("context.model", params, "Not chosen") is not None
        if is_chosen:
            self._hint(f"{name} answers here now, unless a message names another.")
        return is_chosen

    async def models(self) -> ModelsHere | None:
        """Return the models that answer here; None if the kernel does not say."""
        context = {"context": self._session.document.context}
        try:
            here = await self._session.call("context.model", context)
            listed = await self._session.call("model.list", {})
        except AntiphonError as error:
            if error.code not in (ErrorCode.PERMISSION_DENIED, ErrorCode.NO_KERNEL):
                self._hint(f"The models cannot be listed: {error.message}")
            return None
        if not self._session.is_guest:
            self.nobody = listed.get("advice") or NOBODY
        names, default = tuple(here["models"]), here.get("model")
        known = {one["name"]: one.get("window") for one in listed["models"]}
        window = known.get(default)
        if default is None or window is None:
            return ModelsHere(names, default)
        try:
            usage = await self._session.call("context.usage", {**context, "model": default})
        except AntiphonError as error:
            if error.code is ErrorCode.NO_KERNEL:
                return None
            self._hint(f"Not known how full the model's window is: {error.message}")
            return ModelsHere(names, default)
        return ModelsHere(
            names,
            default,
            here["instruction_tokens"] + usage["estimated_tokens"],
            window.get("total") or window["input"],
            usage["used"]["cost"],
        )

    async def contexts(
        self, seen: Mapping[str, int], *, archived: bool = False
    ) -> list[ContextName]:
        """Return the contexts, oldest first, with what changed since they were `seen`."""
        params: dict[str, Any] = {"seen": dict(seen), "archived": archived}
        result = await self.call("context.list", params, "The contexts cannot be listed")
        return [
            ContextName(
                one["context_id"],
                displayable_in_a_row(one["label"]),
                one["context_version"],
                one.get("changed", 0),
                source=one.get("source_context"),
                changed_at=one["last_change"],
                is_archived="archived" in one,
            )
            for one in ([] if result is None else result["contexts"])
        ]
