"""Errors of providers, from the exceptions of pydantic-ai and the libraries below it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)

from antiphon_kernel.providers.events import ErrorKind, ProviderError

TOO_LONG: Final = re.compile(
    "|".join(
        (
            r"prompt is too long",
            r"request_too_large",
            r"input is too long for requested model",
            r"exceeds the context window",
            r"input token count.*exceeds the maximum",
            r"maximum prompt length is \d+",
            r"reduce the length of the messages",
            r"maximum context length is \d+ tokens",
            r"exceeds the limit of \d+",
            r"exceeds the available context size",
            r"greater than the context length",
            r"context window exceeds limit",
            r"exceeded model token limit",
            r"context[_ ]length[_ ]exceeded",
            r"model_context_window_exceeded",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
"""Texts by which services say that a request is larger than the model takes."""

LIMITED: Final = re.compile(
    r"rate.?limit|too many requests|per (minute|min|second|day)\b|output tokens", re.IGNORECASE
)
"""Texts about other limits that may look alike."""

_LOOKED_AT: Final = 4_096
"""Code points of an error's text that such texts are looked for in: the patterns may take time in
proportion to the square of it."""

_KINDS: Final[Sequence[tuple[type[Exception], ErrorKind]]] = (
    (ModelQuotaExceededError, ErrorKind.QUOTA),
    (ModelRateLimitError, ErrorKind.RATE_LIMITED),
    (ModelAuthenticationError, ErrorKind.UNAUTHORISED),
    (ModelUnavailableError, ErrorKind.OVERLOADED),
    (ModelServerError, ErrorKind.OVERLOADED),
    (ModelConnectionError, ErrorKind.UNREACHABLE),
    (ModelRequestTimeout, ErrorKind.UNREACHABLE),
    (UnexpectedModelBehavior, ErrorKind.UNREACHABLE),
)


def provider_error(error: Exception) -> ProviderError:
    """Return the error of a round that the library has ended with an exception.

    Its text is the provider's: mask the key in it before anybody sees it.
    """
    text = _text(error)
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    return ProviderError(text, _kind(error, text[:_LOOKED_AT]), wait)


def _kind(error: Exception, text: str) -> ErrorKind:
    for kind, found in _KINDS[:2]:
        if isinstance(error, kind):
            return found
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    is_short = status in {400, 413} and isinstance(error, ModelHTTPError) and not error.body
    if isinstance(error, ModelContextWindowExceededError) or is_short:
        return ErrorKind.CONTEXT_TOO_LONG
    if TOO_LONG.search(text) and not LIMITED.search(text):
        return ErrorKind.CONTEXT_TOO_LONG
    for kind, found in _KINDS[2:]:
        if isinstance(error, kind):
            return found
    if status is not None:
        return ErrorKind.OVERLOADED if status >= 500 else ErrorKind.INVALID_REQUEST
    # An event that is no JSON is what is left of one that was cut.
    if isinstance(error.__cause__, ValueError):
        return ErrorKind.UNREACHABLE
    # What the library says of a prompt before it sends it.
    is_refused = isinstance(error, RuntimeError) and not isinstance(error, AgentRunError)
    return ErrorKind.INVALID_REQUEST if is_refused else ErrorKind.OTHER


def _text(error: Exception) -> str:
    if isinstance(error, ModelConnectionError):
        return f"No answer from the provider: {error.message.rstrip('.')}."
    if not isinstance(error, ModelAPIError):
        return f"{type(error).__name__}: {error}"
    said = _said(error.body) or error.message
    code = error.provider_error_code or error.provider_error_type
    about = [str(error.status_code)] if isinstance(error, ModelHTTPError) else []
    about += [code] if code and code not in said else []
    return f"The provider answered {', '.join(about) or 'with an error'}: {said}"


def _said(body: object) -> str | None:
    """Return the message in the body of an error."""
    if isinstance(body, list) and body:
        return _said(body[0])
    if not isinstance(body, Mapping):
        return body if isinstance(body, str) and body else None
    message = body.get("message")
    return message if isinstance(message, str) and message else _said(body.get("error"))
