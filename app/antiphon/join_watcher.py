"""Notifications to a kernel's owner: who has joined, and what is wrong in its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from antiphon.options import AppOptions
from antiphon_kernel.types.errors import AntiphonError

SHOWN_PROBLEMS: Final = 3
"""Problems of configuration files that are told one by one."""

WAIT_SECONDS: Final = 60
"""How long one question waits for somebody to come.

The kernel keeps one that was dropped for as long, with its connection.
"""


class JoinWatcher:
    """Asks on a line of its own, since calls on one line wait for each other."""

    def __init__(self, options: AppOptions, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell
        self._last: int | None = None

    async def run(self) -> None:
        """Tell of everybody who joins, until the kernel goes away or does not say any more.

        Begins with what is wrong in configuration files.
        """
        with suppress(AntiphonError):  # asked again when the connection is back
            async with self._options.connect() as calls:
                if self._last is None:
                    with suppress(AntiphonError):  # of a kernel that knows no such tool
                        listed = await calls.call("model.list", {"published": False})
                        for sentence in format_problems(listed["problems"]):
                            self._tell(sentence)
                    self._last = int((await calls.call("kernel.joins", {}))["last"])
                while True:
                    asked = {"after": self._last, "wait": WAIT_SECONDS}
                    answer = await calls.call("kernel.joins", asked)
                    self._last = int(answer["last"])
                    for join in answer["joins"]:
                        self._tell(format_join(join))


def format_problems(problems: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each of the first problems, and one for the others."""
    for problem in problems[:SHOWN_PROBLEMS]:
        place = problem["file"] + (f":{problem['line']}" if "line" in problem else "")
        yield f"{place}: {problem['message']}"
    if problems[SHOWN_PROBLEMS:]:
        yield f"{len(problems) - SHOWN_PROBLEMS} more problems: `antiphon models` lists them."


def format_join(join: dict[str, Any]) -> str:
    article = "an" if str(join["role"])[:1] in "aeo" else "a"
    return f"{join['username']} has joined as {article} {join['role']}."
