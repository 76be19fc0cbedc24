"""Opening of the models of services; the library of one is imported when it is first asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from antiphon_kernel.providers.events import ErrorKind, ProviderError, TurnEvent
from antiphon_kernel.providers.local import LocalProvider
from antiphon_kernel.providers.model_config import ModelConfig, ModelKind
from antiphon_kernel.providers.provider import ModelPrompt, RemoteProvider, RoundRequest
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.frozen_json import JsonObject

if TYPE_CHECKING:
    from antiphon_kernel.providers.library_model import LibraryModel

SILENCE: Final = 600.0
"""Seconds without a byte after which a server is gone; a small one may read for minutes."""

_SERVICES: Final = {
    ModelKind.ANTHROPIC: ("anthropic", "ANTHROPIC_API_KEY"),
    ModelKind.OPENAI: ("openai", "OPENAI_API_KEY"),
    ModelKind.OPENAI_CHAT: ("openai", "OPENAI_API_KEY"),
    ModelKind.GOOGLE: ("google", "GEMINI_API_KEY"),
}
"""For each kind of model, the extra of this package with its library, and where its key is."""


class LibraryMissing(AntiphonError):
    """The library of a kind of model is not installed."""

    def __init__(self, kind: ModelKind, cause: ImportError) -> None:
        super().__init__(
            ErrorCode.INVALID_PARAMS,
            f"Models of kind {kind} need a library that is not installed ({cause}):"
            f" run  pip install 'antiphon[{_SERVICES[kind][0]}]'",
        )


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
            kind = self.config.kind
            message = (
                f"Models of kind {kind} need a key: set {_SERVICES[kind][1]}, or name it in config"
            )
            yield ProviderError(message, ErrorKind.UNAUTHORISED)
            return
        try:
            model = await asyncio.to_thread(self._open)
        except LibraryMissing as error:
            yield ProviderError(error.message, ErrorKind.NOT_INSTALLED)
            return
        async with aclosing(model.stream(await request.read())) as events:
            async for event in events:
                yield self._explained(event) if isinstance(event, ProviderError) else event

    def _explained(self, error: ProviderError) -> ProviderError:
        """Return an error with what a person can look at: the key's source, the address."""
        config, message = self.config, error.message.rstrip()
        if error.kind is ErrorKind.UNAUTHORISED and config.key is None:
            message += f" No key was sent: name key_env or key_file of [models.{config.name}]."
        elif error.kind is ErrorKind.UNAUTHORISED and config.key is not None:
            message += f" The key is that of {config.key.source}."
        elif error.kind is ErrorKind.UNREACHABLE and config.base_url is not None:
            message += f" Asked at {config.base_url}."
        return replace(error, message=message)

    def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the body that would be sent for a prompt.

        Raises:
            LibraryMissing: if it cannot be said without the library.
        """
        return self._open().payload(prompt)

    async def close(self) -> None:
        """Close connections."""
        if self._opened is not None:
            await self._opened.close()

    def _open(self) -> LibraryModel:
        with self._opening:
            if self._opened is None:
                try:
                    self._opened = _model_class(self.config.kind)(self.config, self.silence)
                except ImportError as error:
                    raise LibraryMissing(self.config.kind, error) from error
            return self._opened


def _model_class(kind: ModelKind) -> type[LibraryModel]:
    match kind:
        case ModelKind.ANTHROPIC:
            from antiphon_kernel.providers.anthropic import MessagesModel

            return MessagesModel
        case ModelKind.OPENAI:
            from antiphon_kernel.providers.openai import ResponsesModel

            return ResponsesModel
        case ModelKind.OPENAI_CHAT:
            from antiphon_kernel.providers.openai import ChatModel

            return ChatModel
        case _:
            from antiphon_kernel.providers.google import GeminiModel

            return GeminiModel
