"""Models asked in the form of Anthropic's Messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.profiles.anthropic import AnthropicModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from antiphon_kernel.layout import BlockPosition
from antiphon_kernel.providers.library_model import LibraryModel, hold_back
from antiphon_kernel.providers.provider import ModelPrompt

ANTHROPIC_URL: Final = "https://api.anthropic.com"

MARKS: Final = 4
"""Most blocks of one request that may be marked for the cache."""

LEAST_THINKING: Final = 1_024


class MessagesModel(LibraryModel):
    """Model behind Messages."""

    terminator = re.compile(rb"[\r\n]event: ?message_stop")

    def open(self, client: httpx2.AsyncClient, key: str) -> Model[Any]:
        """Return the library's model."""
        service = AsyncAnthropic(
            api_key=key,
            base_url=self.config.base_url or ANTHROPIC_URL,
            http_client=client,
            max_retries=0,
        )
        hold_back(service.beta.messages, "messages")
        # Without this the library asks again by itself when a thinking block is refused.
        profile = AnthropicModelProfile(anthropic_binds_thinking_blocks=False)
        provider = AnthropicProvider(anthropic_client=service)
        return AnthropicModel(self.config.model, provider=provider, profile=profile)

    def marks(self, prompt: ModelPrompt) -> Sequence[BlockPosition]:
        """Return the last marks that fit beside that of the instructions or the tools."""
        room = MARKS - bool(prompt.system or prompt.tools)
        return prompt.conversation.marks[-room:]

    def settings(self, prompt: ModelPrompt) -> AnthropicModelSettings:
        """Return the settings of a request."""
        settings = AnthropicModelSettings(max_tokens=prompt.max_tokens)
        # What is kept up to the end of the instructions holds the tools too.
        room = MARKS - len(self.marks(prompt)) - bool(prompt.system)
        settings["anthropic_cache_instructions"] = bool(prompt.system)
        settings["anthropic_cache_tool_definitions"] = room > 0
        budget = min(self.config.thinking or 0, prompt.max_tokens - 1)
        if self.config.thinking == 0:
            settings["anthropic_thinking"] = {"type": "disabled"}
        elif budget >= LEAST_THINKING:
            if self._model.profile.get("anthropic_disallows_budget_thinking"):
                settings["anthropic_thinking"] = {"type": "adaptive"}
            else:
                settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}
        return settings
