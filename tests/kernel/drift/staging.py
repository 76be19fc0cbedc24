"""Drifts that are staged and not delivered, as a kernel leaves them that is killed in between."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools import drift
from tests.kernel.kernel.calls import Caller


class KilledError(Exception):
    """The kernel dies here."""


async def staged(call: Caller, tool: str = "drift.push", /, **params: Any) -> str:
    """Ask for a drift that is not delivered; return its id."""

    async def killed(*_: Any) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drift, "deliver", killed)
        with pytest.raises(KilledError):
            await call(tool, **params)
    return call.kernel.drifts.rows()[-1].id


async def listed(kernel: Kernel, drift_id: str) -> dict[str, Any]:
    """Return the entry of a drift in drift.list."""
    actor = kernel.open_session(kernel.owner, "test")
    drifts = (await kernel.call(actor, "drift.list", {}))["drifts"]
    return next(one for one in drifts if one["drift_id"] == drift_id)


def content(context: Context) -> list[tuple[str, str, str]]:
    """Id, kind and text of each block."""
    document = context.document
    headers = document.headers(document.block_ids())
    return [(one.id, str(one.kind), document.text(one.id)) for one in headers]
