"""`turn.wait`: the end of the turns that answer a message."""

from __future__ import annotations

from typing import Final

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, Tool, tool
from antiphon_kernel.turns.runner import runner_of
from antiphon_kernel.types.roles import Permission


class WaitTurnsParams(Params):
    """A message."""

    message: str
    """The block that is answered."""


class WaitTurnsResult(Result):
    """The last turns that answered."""

    models: list[str]
    """Usernames of the models that have answered, or were to; those of long ago are forgotten."""
    interrupted: list[str]
    """Those of them whose last turn was stopped."""


@tool("turn.wait", needs=Permission.READ, errors=REFERENCES)
async def wait_turns(call: Call, params: WaitTurnsParams) -> WaitTurnsResult:
    """Wait until no model answers a message any more; answers at once if none does.

    The connection answers no other call meanwhile.
    """
    context, block = await call.block(params.message)
    ended = await runner_of(call.kernel).wait_answered(context, block)
    return WaitTurnsResult(
        models=[job.username for job in ended],
        interrupted=[job.username for job in ended if job.stopping],
    )


WAITING_TOOLS: Final[tuple[Tool, ...]] = (wait_turns,)
