"""Ctrl+C, whenever it comes: dealt with in one place, so that none is lost.

While modules are imported nothing is open yet: Ctrl+C ends the process as the system does
(`default_sigint`). While a command talks to a kernel it is an event of the loop: it ends the
command's work, which may still say its last, and the next one ends the process (`run`). Elsewhere
it is Python's KeyboardInterrupt.

`asyncio.run` by itself does not suffice. A signal that comes in the moment before its loop goes to
sleep interrupts no system call, and is noticed with the next event only, if there ever is one. And
it cancels whatever the command waits for, where a time limit that runs out at the same moment may
take the cancellation for its own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

GRACE_SECONDS: Final = 2.0
"""How long interrupted work may take for its last words and for closing its connection."""


class _InterruptedError(Exception):
    """Ctrl+C has ended the work."""


@contextmanager
def default_sigint() -> Iterator[None]:
    """Meanwhile Ctrl+C ends the process without a word: there is nothing to put in order."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # whoever started us wants it otherwise
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run(work: Callable[[], Coroutine[Any, Any, Result]], *, grace: float = GRACE_SECONDS) -> Result:
    """Return the result of `work`, run in an event loop of its own.

    Args:
        grace: seconds that it has to end when it is interrupted, before it is cancelled again.

    Raises:
        KeyboardInterrupt: if Ctrl+C ended it. If interrupted work fails, it is that what is raised.
    """
    import asyncio

    early = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        # Until the loop deals with it, it is kept: raised here, it would leave the coroutine behind
        # that was to be run. Blocking it would not do, other threads would still take it.
        signal.signal(signal.SIGINT, lambda number, frame: early.set())
    try:
        return asyncio.run(_attended(work, grace, early))
    except _InterruptedError:
        before = signal.SIG_DFL  # the process is about to end: the next one may hurry it
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


async def _attended(
    work: Callable[[], Coroutine[Any, Any, Result]], grace: float, early: threading.Event
) -> Result:
    """Return the result of `work`, or end it by Ctrl+C, be it one that came `early`."""
    import asyncio

    interruption = asyncio.Event()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        # The first wakes a loop that sleeps. The second is for a loop that is stuck in a system
        # call and does not get to hear of it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interruption.set)
        signal.signal(signal.SIGINT, _second_sigint_kills)
    if early.is_set():
        interruption.set()
    working = asyncio.ensure_future(work())
    interrupted = asyncio.ensure_future(interruption.wait())
    await asyncio.wait({working, interrupted}, return_when=asyncio.FIRST_COMPLETED)
    if interrupted.cancel() or working.done():
        return working.result()
    working.cancel()
    await asyncio.wait({working}, timeout=grace)
    if working.done() and not working.cancelled():
        return working.result()
    raise _InterruptedError


def _second_sigint_kills(number: int, frame: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
