"""One context that a client has open: what happens in it is told, and prompts are sent to it."""

from __future__ import annotations

import asyncio
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from acp import schema
from acp.helpers import ContentBlock, SessionUpdate, update_agent_message_text
from acp.interfaces import Client
from acp.task import TaskSupervisor

from antiphon.acp_agent.updates import SessionUpdates
from antiphon.followed_block import REST_SECONDS, list_blocks, read_event
from antiphon_kernel.client.address import Locate
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.text.mentions import mentions
from antiphon_kernel.types import constants
from antiphon_kernel.types.block_metadata import CHOICES, ERROR_KIND
from antiphon_kernel.types.enums import BlockKind, CallPermission, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.signal import News

_DECISIONS: Final[dict[str, tuple[schema.PermissionOptionKind, str]]] = {
    "once": ("allow_once", "Allow once"),
    "always": ("allow_always", "Always allow it"),
    "no": ("reject_once", "No"),
}
"""With the words for a call that has none of its own."""

_STOP_REASONS: Final[dict[str, schema.StopReason]] = {
    constants.MAX_TOKENS: "max_tokens",
    constants.REFUSED: "refusal",
    "limit": "max_turn_requests",
}


class AcpSession:
    """Follows a context for a client, and speaks in it for the person who uses that client."""

    def __init__(
        self, context: str, find: Callable[[Path], Locate], project: Path, client: Client
    ) -> None:
        """`find` starts the kernel if need be."""
        self.id, self._client = context, client
        self._project, self._find = project, find
        self._updates = SessionUpdates(project)
        self._pushed = asyncio.Queue[Any]()
        """Events, and None when editing may have come to rest."""
        self._taken = News()
        self._calls = ToolClient(lambda: find(project)())  # noqa: PLW0108  finds it anew each time
        self._calls.on_push = self._pushed.put_nowait
        self._tasks = TaskSupervisor(source="session")
        self._tasks.create(self._follow())
        self._is_open = False
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Questions that the client was asked, by call."""
        self._message: str | None = None
        """The message that is being answered."""
        self._is_cancelled = False

    async def open(self) -> None:
        """Tell all blocks that were not told yet, and from now on whatever comes."""
        if self._is_open:
            return
        await asyncio.to_thread(self._find, self._project)
        calls, blocks = self._calls, self._updates.blocks
        self._updates.me = (await calls.call("session.whoami", {}))["username"]
        await self.options()
        known = {block: one.version for block, one in blocks.items()}
        await calls.call("block.subscribe", {"context": self.id, "from_versions": known})
        self._is_open = True
        for one in await list_blocks(calls, self.id):
            block = one["block_id"]
            while self._is_open and (block not in blocks or blocks[block].version < one["version"]):
                await self._taken.wait()

    async def close(self) -> None:
        """Let go of the context; what runs in it goes on."""
        await self._tasks.shutdown()
        await self._calls.close()

    async def options(self, model: str | None = None) -> schema.SessionConfigOptionSelect:
        """Return who may be chosen to answer here, after choosing one if a name is given."""
        about = {"context": self.id}
        chosen = {} if model is None else {"model": model}
        here = await self._calls.call("context.model", about | chosen)
        agents = (await self._calls.call("agent.list", about))["agents"]
        self._updates.model = here.get("model")
        names = [*here["models"], *(one["name"] for one in agents)]
        named = [schema.SessionConfigSelectOption(value=one, name=one) for one in names]
        if self._updates.model is None:
            named.append(schema.SessionConfigSelectOption(value="", name="nobody"))
        return schema.SessionConfigOptionSelect(
            type="select",
            id="model",
            name="Model",
            category="model",
            description="Answers messages that name nobody, for everybody in this context",
            current_value=self._updates.model or "",
            options=named,
        )

    # Prompts

    async def prompt(self, prompt: Sequence[ContentBlock]) -> schema.StopReason:
        """Send a message; return how the turn ended that answers it, unless it has failed."""
        self._is_cancelled = False
        text, files, references = _read_prompt(prompt, self._project)
        await self.open()
        names = {str(one.value) for one in (await self.options()).options}
        if self._updates.model is None and not names & set(mentions(text)):
            raise invalid_params(
                "No model answers here: choose one, or begin with @ and the name of a model or"
                " an agent. `antiphon models` says which there are, and how to get one."
            )
        try:
            message = self._message = await self._send(text, files, references)
            if self._is_cancelled:
                await self.cancel()
            async with self._calls.another() as waiting:
                ended = await waiting.call("turn.wait", {"message": message})
            await self._catch_up()
            return "cancelled" if ended["interrupted"] else self._outcome(message)
        finally:
            self._message = None

    async def cancel(self) -> None:
        """Stop the turn that answers the prompt."""
        self._is_cancelled = True
        if self._message is not None:
            await self._calls.call("turn.interrupt", {"message": self._message})

    async def _send(
        self, text: str, files: Sequence[dict[str, Any]], references: Sequence[str]
    ) -> str:
        new = {"context": self.id, "role": "user", "kind": "text", "content": text}
        message = str((await self._calls.call("block.create", new))["block_id"])
        self._updates.own.add(message)
        if files:
            await self._calls.call("block.attach", {"block_id": message, "files": files})
        for path in references:
            new = {"kind": "file", "parent_id": message, "path": path}
            await self._calls.call("block.create", new)
        await self._calls.call("block.status", {"block_id": message, "status": Status.DONE})
        return message

    def _outcome(self, message: str) -> schema.StopReason:
        blocks = self._updates.blocks.values()
        answers = [one for one in blocks if one.header.get("parent_id") == message]
        header = answers[-1].header if answers else {}
        reason = str(header.get("metadata", {}).get(ERROR_KIND) or header.get("stop_reason"))
        if header.get("kind") == BlockKind.ERROR and reason not in _STOP_REASONS:
            raise AntiphonError(ErrorCode.INVALID_TRANSITION, answers[-1].text)
        return _STOP_REASONS.get(reason, "end_turn")

    # Events

    async def _follow(self) -> None:
        while True:
            pushed = await self._pushed.get()
            try:
                if pushed is None:
                    await self._tell(self._updates.flush(time.monotonic()))
                else:
                    await self._take(read_event(pushed))
            except AntiphonError as error:
                self._is_open = False
                if self._message is None:  # else it is the answer
                    note = f"{error.message} The next message looks for the kernel again."
                    await self._tell([update_agent_message_text(note)])
            self._pushed.task_done()
            self._taken.announce()

    async def _catch_up(self) -> None:
        """Tell everything that has happened."""
        await self._calls.call("session.whoami", {})  # is answered behind every event before it
        await self._pushed.join()
        await self._tell(self._updates.flush())

    async def _take(self, event: dict[str, Any]) -> None:
        block, rendered = event["block_id"], None
        known = self._updates.blocks.get(block)
        is_text = isinstance(event.get("content", ""), str)
        if not is_text or (known is not None and known.structured):
            rendered = (await self._calls.call("block.render", {"block_id": block}))["text"]
        await self._tell(self._updates.take(event, time.monotonic(), rendered))
        if self._updates.due:
            put = asyncio.get_running_loop().call_later
            put(REST_SECONDS, self._pushed.put_nowait, None)
        one = self._updates.blocks[block]
        asks = not one.over and one.header.get("permission") == CallPermission.ASKED
        if not asks and block in self._asking:
            self._asking.pop(block).cancel()
        elif asks and one.header["runs_for"] == self._updates.me and block not in self._asking:
            self._asking[block] = self._tasks.create(self._ask(block))

    async def _ask(self, call: str) -> None:
        """Ask the client whether a call may run."""
        shown = schema.ToolCallUpdate(tool_call_id=call, **self._updates.calls[call])
        words = self._updates.blocks[call].header.get("metadata", {}).get(CHOICES)
        options = [
            schema.PermissionOption(option_id=one, kind=kind, name=(words or {}).get(one, usual))
            for one, (kind, usual) in _DECISIONS.items()
            if words is None or one in words or one == "no"
        ]
        answer = await self._client.request_permission(self.id, shown, options)
        if isinstance(answer.outcome, schema.AllowedOutcome):
            decided = {"block_id": call, "decision": answer.outcome.option_id}
            try:
                await self._calls.call("permission.decide", decided)
            except AntiphonError as error:
                await self._tell([update_agent_message_text(error.message)])

    async def _tell(self, updates: Iterable[SessionUpdate]) -> None:
        for one in updates:
            await self._client.session_update(self.id, one)


def _read_prompt(
    prompt: Sequence[ContentBlock], project: Path
) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Return the text of a message, files to attach to it, and files that it refers to."""
    text, files, references = "", list[dict[str, Any]](), list[str]()
    for one in prompt:
        match one:
            case schema.TextContentBlock():
                text += one.text
            case schema.ResourceContentBlock():
                path = _project_path(one.uri, project)
                text += f"[{one.name}]({one.uri})" if path is None else f"`{path}`"
                references += [] if path is None else [path]
            case schema.EmbeddedResourceContentBlock(resource=resource):
                name = Path(unquote(urlsplit(resource.uri).path)).name or "resource"
                if isinstance(resource, schema.TextResourceContents):
                    data = b64encode(resource.text.encode()).decode()
                else:
                    data = resource.blob
                files.append({"name": name, "data": data})
                text += f"`{name}`"
            case schema.ImageContentBlock():
                name = f"image-{len(files) + 1}.{one.mime_type.rpartition('/')[2]}"
                files.append({"name": name, "data": one.data})
    return text.strip() or "See the attached files.", files, references


def _project_path(uri: str, project: Path) -> str | None:
    """Return the path of a file in the project, with its lines as references have them."""
    parts = urlsplit(uri)
    place = Path(unquote(parts.path))
    if parts.scheme != "file" or not place.is_relative_to(project) or not place.is_file():
        return None
    numbers = "-".join(f"L{one}" for one in re.findall("[0-9]+", parts.fragment))
    return place.relative_to(project).as_posix() + (f"#{numbers}" if numbers else "")
