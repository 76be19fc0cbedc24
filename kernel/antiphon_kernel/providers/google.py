"""Models asked in the form of Gemini's `streamGenerateContent`."""

from __future__ import annotations

from typing import Any, Final

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel, GoogleModelSettings
from pydantic_ai.providers.google import GoogleProvider

from antiphon_kernel.providers.library_model import LibraryModel
from antiphon_kernel.providers.provider import ModelPrompt

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com/"


class GeminiModel(LibraryModel):
    """Model behind the Gemini API."""

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        options = HttpOptions(
            base_url=self.config.base_url or GOOGLE_URL, httpx_async_client=client
        )
        service = Client(vertexai=False, api_key=key, http_options=options)
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
