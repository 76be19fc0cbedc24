"""Tools: defined once, called from everywhere.

A tool is a typed request, a typed result, a docstring and a handler. Requests are strict: an
unknown field, a number where a string belongs, or half a surrogate pair is an error that names the
field.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from types import ModuleType
from typing import Any, ClassVar, Final, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from antiphon_kernel.param_errors import did_you_mean, half_surrogate_error, param_error
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.roles import Permission


class Params(BaseModel):
    """Base of every request."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class NoParams(Params):
    """Nothing to say."""


class Result(BaseModel):
    """Base of every result."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    record: ClassVar[type | None] = None
    """The dataclass whose fields it shows, docstrings included; None if it has only its own."""


EVERY_CALL: Final = (
    ErrorCode.INVALID_PARAMS,
    ErrorCode.PERMISSION_DENIED,
    ErrorCode.STORAGE_FAILED,
    ErrorCode.NO_KERNEL,
)
"""The errors of every call."""

REFERENCES: Final = (
    ErrorCode.BLOCK_NOT_FOUND,
    ErrorCode.CONTEXT_NOT_FOUND,
    ErrorCode.AMBIGUOUS_ID,
)
"""The errors of a call that names a block or a context."""

_ENCODER: Final = json.JSONEncoder(allow_nan=False)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as callers see it."""

    name: str
    params: type[Params]
    result: type[Result]
    handler: Callable[[Any, Any], Awaitable[Result]]
    doc: str
    needs: Permission
    """The permission that the caller needs at least; the handler may ask for more."""
    errors: tuple[ErrorCode, ...]
    """Its errors, besides those of every call."""

    def parse(self, params: Mapping[str, Any]) -> Params:
        """The request as a value.

        Raises:
            AntiphonError: invalid_params, naming every wrong field.
        """
        try:
            # JSON mode: strict types, but enums from their strings and no lone surrogates.
            return self.params.model_validate_json(_ENCODER.encode(params), strict=True)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] == "json_invalid":
                half = half_surrogate_error(self.name, params)
                if half is not None:
                    raise half from error
            raise param_error(self.name, self.params, params, error) from error
        except (TypeError, ValueError) as error:
            raise invalid_params(f"The parameters of {self.name} are not JSON: {error}.") from error
        except RecursionError as error:
            raise invalid_params(
                f"The parameters of {self.name} are nested too deeply: send flatter ones.",
                tool=self.name,
            ) from error


def tool(
    name: str, *, needs: Permission, errors: Iterable[ErrorCode] = ()
) -> Callable[[Callable[[C, P], Awaitable[R]]], Tool]:
    """Make a tool of ``async def handler(call, params: P) -> R``; its docstring is the tool's."""

    def define(handler: Callable[[C, P], Awaitable[R]]) -> Tool:
        hints = get_type_hints(handler)
        doc = getdoc(handler) or ""
        return Tool(
            name, hints["params"], hints["return"], handler, doc, needs, (*errors, *EVERY_CALL)
        )

    return define


def tools_of(*modules: ModuleType) -> tuple[Tool, ...]:
    """Return the tools that modules define, in the order in which they do."""
    return tuple(
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, Tool) and one.handler.__module__ == module.__name__
    )


class Registry:
    """Every tool of a kernel, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            if one.name in self._tools:
                raise ValueError(f"two tools are called {one.name}")
            self._tools[one.name] = one

    @property
    def names(self) -> list[str]:
        return sorted(self._tools)

    def __getitem__(self, name: str) -> Tool:
        """Raises AntiphonError unknown_tool."""
        found = self._tools.get(name)
        if found is None:
            hint = did_you_mean(name, self._tools)
            raise AntiphonError(
                ErrorCode.UNKNOWN_TOOL,
                f"There is no tool {quote(name)}.{hint} `kernel.tools` lists the {len(self.names)}"
                " that there are.",
                tool=truncate(name),
                allowed=self.names,
            )
        return found
