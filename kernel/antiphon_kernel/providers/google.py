"""Models asked in the form of Gemini's `streamGenerateContent`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions
from pydantic.alias_generators import to_camel
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel, GoogleModelSettings
from pydantic_ai.providers.google import GoogleProvider
from pydantic_core import to_jsonable_python

from antiphon_kernel.providers.library_model import LibraryModel, hold_back, tls_context
from antiphon_kernel.providers.provider import ModelPrompt

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com/"

_camel: Final = cache(to_camel)

_STAND_IN: Final = ({"role": "user", "parts": [{"text": ""}]},)


def _sent(contents: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return a conversation, in the library's words, as the library writes it for the service."""
    return [
        {
            **content,
            "parts": [
                {
                    _camel(name): to_jsonable_python(field, bytes_mode="base64")
                    for name, field in part.items()
                    if field is not None
                }
                for part in content["parts"]
            ],
        }
        for content in contents
    ]


class GeminiModel(LibraryModel):
    """Model behind the Gemini API."""

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        options = HttpOptions(
            base_url=self.config.base_url or GOOGLE_URL,
            httpx_async_client=client,
            async_client_args={"verify": tls_context(), "ssl": tls_context()},
        )
        service = Client(vertexai=False, api_key=key, http_options=options)
        hold_back(service.aio.models, "contents", "generate_content_stream", _sent, _STAND_IN)
        return GoogleModel(self.config.model, provider=GoogleProvider(client=service))

    def settings(self, prompt: ModelPrompt) -> GoogleModelSettings:
        """Return the settings of a request."""
        settings = GoogleModelSettings(max_tokens=prompt.max_tokens)
        budget = self.config.thinking
        if budget is not None:
            settings["google_thinking_config"] = {
                "thinking_budget": budget,
                "include_thoughts": budget > 0,
            }
        elif self._model.profile.get("supports_thinking"):
            settings["google_thinking_config"] = {"include_thoughts": True}
        return settings
