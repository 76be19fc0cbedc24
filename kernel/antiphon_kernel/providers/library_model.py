"""Model of a service, asked through pydantic-ai."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import Any, ClassVar

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.providers.events import End, ErrorKind, StopReason, TurnEvent
from antiphon_kernel.providers.http_clients import (
    RequestRecorder,
    ServiceClient,
    building_request,
    receiving,
)
from antiphon_kernel.providers.library_errors import provider_error
from antiphon_kernel.providers.library_events import EventReader
from antiphon_kernel.providers.library_messages import library_messages, request_parameters
from antiphon_kernel.providers.model_config import ModelConfig
from antiphon_kernel.providers.provider import ModelPrompt
from antiphon_kernel.types.frozen_json import JsonObject

NO_KEY = "no-key"
"""Sent to a server of one's own that needs none; the libraries insist on having one."""


class LibraryModel(ABC):
    """Model of one kind; a subclass says which model of the library it is, and its settings."""

    terminator: ClassVar[Any] = None
    """Pattern of the bytes without which an answer is cut; None where the library sees to it."""

    def __init__(self, config: ModelConfig, silence: float) -> None:
        self.config = config
        self._client = ServiceClient(silence, self.terminator)
        self._model = self.open(self._client, config.key.value if config.key else NO_KEY)

    @abstractmethod
    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model, which sends through `client` and never sends twice."""

    @abstractmethod
    def settings(self, prompt: ModelPrompt) -> ModelSettings:
        """Return what this kind of model is told beside the prompt."""

    def marks(self, prompt: ModelPrompt) -> Sequence[BlockPosition] | None:
        """Return the content blocks that are marked for the cache; None if there are no marks."""
        return None

    async def stream(self, prompt: ModelPrompt) -> AsyncGenerator[TurnEvent, None]:
        """Yield the events of one round."""
        reader = EventReader(self.config)
        try:
            async with AsyncExitStack() as stack:
                with receiving() as received, building_request():
                    stream = await stack.enter_async_context(self._request(self._model, prompt))
                for response in received:
                    stack.push_async_callback(response.aclose)
                events = await stack.enter_async_context(aclosing(reader.read(stream)))
                async for event in events:
                    yield event
        # The libraries raise errors of their own, of each other's, and of Python for odd answers.
        except Exception as error:  # noqa: BLE001
            failed = provider_error(error)
            if failed.kind is ErrorKind.UNREACHABLE and reader.has_content:
                yield End(StopReason.TRUNCATED)
                return
            yield replace(failed, message=self._masked(failed.message))

    def payload(self, prompt: ModelPrompt) -> JsonObject:
        """Return the body that `stream` would send."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._record(prompt)).result()

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _record(self, prompt: ModelPrompt) -> JsonObject:
        async with RequestRecorder() as recorder:
            try:
                with building_request():
                    async with self._request(self.open(recorder, NO_KEY), prompt):
                        pass
            except Exception:
                if recorder.body is None:
                    raise
            return JsonObject(recorder.body)

    def _request(self, model: Model[Any], prompt: ModelPrompt) -> Any:
        return model_request_stream(
            model,
            library_messages(prompt, self.config, model.system, self.marks(prompt)),
            model_settings=self.settings(prompt),
            model_request_parameters=request_parameters(prompt),
            instrument=False,
        )

    def _masked(self, text: str) -> str:
        key = self.config.key
        return text.replace(key.value, "(key)") if key and key.value else text
