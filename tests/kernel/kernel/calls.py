"""Calls as tests of the kernel layer make them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.reference.error_catalogue import CATALOGUE

Make = Callable[..., Awaitable[str]]
"""Creates a block with these parameters of `block.create`; its id."""

OpenKernel = Callable[..., Awaitable[Kernel]]
"""Opens the kernel of the test's data folder, with these limits if it is given some."""

WRITERS = {
    "user": PrincipalKind.HUMAN,
    "model": PrincipalKind.MODEL,
    "system": PrincipalKind.SOURCE,
    "tool": PrincipalKind.SHELL,
}
"""A kind of principal for each role of blocks."""


async def open_writer(kernel: Kernel, role: str) -> Actor:
    """Begin a session of a principal whose blocks have this role."""
    kind = WRITERS[role]
    return kernel.open_session(await kernel.principal(f"{kind}-writer", kind), "test")


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls as one session makes them."""

    kernel: Kernel
    actor: Actor

    async def __call__(self, tool: str, /, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.actor, tool, params)

    async def context(self, reference: str = "default") -> Context:
        return await self.kernel.context(reference)

    async def refused(self, tool: str, /, **params: Any) -> AntiphonError:
        return await refused(self.kernel, self.actor, tool, params)


async def refused(kernel: Kernel, actor: Actor, tool: str, params: dict[str, Any]) -> AntiphonError:
    """The error of a call that must fail and change nothing, neither document nor journal."""
    context = await kernel.context()
    before = context.document.state_vector(), context.seq
    with pytest.raises(AntiphonError) as caught:
        await kernel.call(actor, tool, params)
    assert (context.document.state_vector(), context.seq) == before
    check_error(kernel, tool, caught.value)
    return caught.value


def check_error(kernel: Kernel, tool: str, error: AntiphonError) -> None:
    """An error is what docs/errors.md and the page of the tool say."""
    code = ErrorCode(error.code)
    sent = error.as_json()
    assert sent.keys() - {"code", "message"} <= CATALOGUE[code].fields.keys()
    assert None not in sent.values()
    assert code is ErrorCode.UNKNOWN_TOOL or code in kernel.registry[tool].errors
    assert code is not ErrorCode.TOO_LARGE or "limit_name" in sent
