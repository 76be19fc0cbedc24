"""The terminal's input, with every pasted character and in the order in which it came."""

from __future__ import annotations

import os
import re
import selectors
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

READ_BYTES: Final = 4_096
POLL_SECONDS: Final = 0.1
"""How often the driver looks for an escape key that nothing follows, and for its end."""

LONGEST_PASTE: Final = 1_000_000
"""Characters that are pasted at once; they fit one update of the document."""

MESSAGES_AHEAD: Final = 256
"""Keys that are read before the app has handled those before them. A key takes a kilobyte and more
until it is handled, and nobody types that fast: whatever sends more waits in the terminal."""

ESCAPE: Final = "\x1b"
ESCAPE_SECONDS: Final = 0.1
"""How long an escape character may be the start of what a function key sends."""

_ESCAPES_AND_TEXT: Final = re.compile(r"\x1b+(?=[^\x00\r\x1b\x7f\[\]OPX^_\\bf]|$)")
"""Escapes before something that begins no sequence of a terminal. Alt with B or F is how many send
a word's move to the left or right, with Backspace its removal; with Enter it is Enter. The others
of this kind mean nothing here."""


_KEEP_TITLE: Final = "\x1b[22;0t"
_RESTORE_TITLE: Final = "\x1b[23;0t"
_ASK_BACKGROUND: Final = "\x1b]11;?\x1b\\"
_BACKGROUND: Final = re.compile(
    r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]{0,5}"
    r"(?:\x07|\x1b\\)"
)
_BEGUN_BACKGROUND: Final = re.compile(r"\x1b\](?:1(?:1(?:;[^\x07\x1b]{0,32}\x1b?)?)?)?\Z")


def is_linux_console() -> bool:
    """Return whether the terminal is the kernel's console, which prints what it does not know."""
    return os.environ.get("TERM") == "linux"


@dataclass
class BackgroundReported(Message):
    """The terminal has said what colour its background has."""

    colour: Color


@dataclass
class PasteRefused(Message):
    """A paste was longer than what is taken; nothing of it is there any more."""

    characters: int


@dataclass
class TerminalLost(Message):
    """The terminal is gone; its session's leader, such as make, may have kept the signal."""


@dataclass
class InputPaused(Message):
    """The driver reads no further before `resume` is called."""

    resume: Callable[[], None]


class PasteSafeParser(XTermParser):
    """Takes a bracketed paste as it is, and Esc for a key of its own whatever is typed after it.

    The base class gets the brackets only: what it makes of the text between them loses characters
    and puts others before the paste as soon as there is an escape character in it. Of an escape
    character directly before a letter, as a slow line delivers them, it makes the letter with Alt.
    Of the terminal's answer about its background it makes keys.
    """

    def __init__(self, debug: bool = False, clock: Callable[[], float] = monotonic) -> None:
        self._pasted: list[str] | None = None
        self._pasted_characters = 0
        self._tail = ""
        self._clock = clock
        self._held = ""
        """Escape characters at the end of the input so far."""
        self._held_since = 0.0
        self._begun = ""
        """Start of an answer of the terminal at the end of the input so far."""
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """Events of the next piece of input, wherever it was cut; an empty one ends the input."""
        if not data:
            yield from self._give_up_answer()
            yield from self._release()
            yield from super().feed("")
            return
        while data:
            if self._pasted is None:
                typed, data = self._until(BRACKETED_PASTE_START, data)
                yield from self._typed(typed)
                if self._tail == BRACKETED_PASTE_START:
                    self._pasted, self._pasted_characters, self._tail = [], 0, ""
                continue
            piece, data = self._until(BRACKETED_PASTE_END, data)
            self._pasted.append(piece)
            self._pasted_characters += len(piece)
            characters = self._pasted_characters - len(BRACKETED_PASTE_END)
            if characters > LONGEST_PASTE:
                self._pasted.clear()
            if self._tail == BRACKETED_PASTE_END:
                text = "".join(self._pasted).removesuffix(BRACKETED_PASTE_END)
                self._pasted, self._tail = None, ""
                for event in super().feed(BRACKETED_PASTE_END):
                    if not isinstance(event, events.Paste):
                        yield event
                is_too_long = characters > LONGEST_PASTE
                yield PasteRefused(characters) if is_too_long else events.Paste(text)

    def _typed(self, data: str) -> Iterable[Message]:
        data, self._held = self._begun + self._held + data, ""
        self._begun = ""
        while answer := _BACKGROUND.search(data):
            yield from self._keys(data[: answer.start()])
            parts = (round(255 * int(one, 16) / (16 ** len(one) - 1)) for one in answer.groups())
            yield BackgroundReported(Color(*parts))
            data = data[answer.end() :]
        if begun := _BEGUN_BACKGROUND.search(data):
            data, self._begun = data[: begun.start()], begun.group()
            self._held_since = self._clock()
        yield from self._keys(data)

    def _keys(self, data: str) -> Iterable[Message]:
        if not data:
            return
        at = 0
        for found in _ESCAPES_AND_TEXT.finditer(data):
            if found.start() > at:
                yield from super().feed(data[at : found.start()])
            at = found.end()
            self._held = found.group()
            if at < len(data):
                yield from self._release()
        self._held_since = self._clock()
        if at < len(data):
            yield from super().feed(data[at:])

    def _release(self) -> Iterable[Message]:
        held, self._held = self._held, ""
        for _ in held:
            yield events.Key("escape", ESCAPE)

    def _give_up_answer(self) -> Iterable[Message]:
        begun, self._begun = self._begun, ""
        if begun:
            yield from super().feed(begun)

    def tick(self) -> Iterable[Message]:
        if self._begun and self._clock() - self._held_since >= ESCAPE_SECONDS:
            yield from self._give_up_answer()
        if self._held and self._clock() - self._held_since >= ESCAPE_SECONDS:
            self._tail = ""
            yield from self._release()
        for event in super().tick():
            # The base class has given up an unfinished sequence: it is no bracket any more.
            self._tail = ""
            yield event

    def _until(self, bracket: str, data: str) -> tuple[str, str]:
        """`data` up to the end of the first bracket, and what is left.

        The bracket may have begun in earlier input; the tail is the whole bracket once it is found.
        """
        seen = self._tail + data
        found = seen.find(bracket)
        if found < 0:
            self._tail = seen[1 - len(bracket) :]
            return data, ""
        end = found + len(bracket) - len(self._tail)
        self._tail = bracket
        return data[:end], data[end:]


class TerminalDriver(LinuxDriver):
    """Reads the terminal through a `PasteSafeParser`; bytes that are no UTF-8 become U+FFFD.

    Asks the terminal for the colour of its background; not all terminals answer. While another
    program has the terminal, nothing is written to it: the app goes on, and draws everything anew
    afterwards. The window has its own title again then, and at the end.
    """

    _title: str | None = None
    _has_kept_title = False

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if not is_linux_console():
            self.write(_ASK_BACKGROUND)
            if self._title is not None:
                self.show_title(self._title)
            self.flush()

    def stop_application_mode(self) -> None:
        if self._has_kept_title:
            self._has_kept_title = False
            self.write(_RESTORE_TITLE)
        super().stop_application_mode()

    def show_title(self, title: str) -> None:
        """Name the terminal's window from now on, without anything that could end the title."""
        self._title = "".join(filter(str.isprintable, title))
        if is_linux_console() or self._writer_thread is None or not self._writer_thread.is_alive():
            return
        if not self._has_kept_title:
            self._has_kept_title = True
            self.write(_KEEP_TITLE)
        self.write(f"\x1b]2;{self._title}\x1b\\")

    def write(self, data: str) -> None:
        if self._writer_thread is None or self._writer_thread.is_alive():
            super().write(data)

    def run_input_thread(self) -> None:
        parent = os.getppid()
        parser = PasteSafeParser(self._debug)
        decoder = getincrementaldecoder("utf-8")("replace")
        ahead = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if os.getppid() != parent and self._is_in_background():
                    self.process_message(TerminalLost())
                    break
                if selector.select(POLL_SECONDS):
                    data = self._read()
                    if not data:
                        self.process_message(TerminalLost())
                        break
                    # Half a character makes no text yet, and an empty piece would end the parser.
                    if text := decoder.decode(data):
                        ahead += self._process(parser.feed(text))
                self._process(parser.tick())
                if ahead >= MESSAGES_AHEAD:
                    ahead = 0
                    self._wait_for_app()
        self._process(parser.feed(""))

    def _read(self) -> bytes:
        """Return what was typed; nothing if the terminal is gone."""
        with suppress(OSError):
            return os.read(self.fileno, READ_BYTES)
        return b""

    def _is_in_background(self) -> bool:
        """Return whether the terminal is another's: a shell takes it back when its child dies."""
        with suppress(OSError):
            return os.tcgetpgrp(self.fileno) != os.getpgrp()
        return True

    def _process(self, messages: Iterable[Message]) -> int:
        """Give messages to the app; return how many there were."""
        count = 0
        for message in messages:
            self.process_message(message)
            count += 1
        return count

    def _wait_for_app(self) -> None:
        """Wait until the app has handled what it was given, or ends."""
        handled = threading.Event()
        self.process_message(InputPaused(handled.set))
        while not handled.wait(POLL_SECONDS) and not self.exit_event.is_set():
            pass
