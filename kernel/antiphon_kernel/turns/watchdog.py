"""A small process that outlives this one and ends its commands if it could not do so itself.

It is told which process groups run. When this process is gone, however it went, the pipe between
the two is closed, and whatever is still named is killed.
"""

from __future__ import annotations

import contextlib
import subprocess
from typing import Final

_SCRIPT: Final = """
trap '' HUP INT TERM
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -)
            others=
            for one in $groups; do
                [ "$one" = "$group" ] || others="$others $one"
            done
            groups=$others
            ;;
    esac
done
for one in $groups; do
    kill -s KILL -- "-$one"
done
"""


class Watchdog:
    """Knows which process groups must not survive this process. Starts when first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """This group dies with us.

        Raises:
            OSError: if no watchdog can be started.
        """
        self._groups.add(group)
        self._notify(f"+ {group}")

    def forget(self, group: int) -> None:
        """This group has ended; its number may be another's soon."""
        self._groups.discard(group)
        with contextlib.suppress(OSError):
            self._notify(f"- {group}")

    def _notify(self, line: str) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self._write(process, line)
                return
        if not self._groups:
            return
        self._process = process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for group in self._groups:
            self._write(process, f"+ {group}")

    def _write(self, process: subprocess.Popen[bytes], line: str) -> None:
        assert process.stdin is not None
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


WATCHDOG: Final = Watchdog()
"""The one of this process."""
