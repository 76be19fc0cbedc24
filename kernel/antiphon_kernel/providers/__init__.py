"""Providers of models: a stream of typed events for one request, the same from every service.

May import `layout`, `messages` and what is below them. Libraries of a service are imported by the
one module that needs them, and only when a model of that kind is first asked.
"""

from antiphon_kernel.providers.events import End, ErrorKind, ProviderError, TextDelta
from antiphon_kernel.providers.model_config import (
    ApiKey,
    ModelConfig,
    ModelKind,
    ModelPrice,
    PermissionPolicy,
    TokenUsage,
    ToolPermit,
)
from antiphon_kernel.providers.provider import (
    ModelPrompt,
    Provider,
    RemoteProvider,
    RoundRequest,
    ToolDefinition,
)
