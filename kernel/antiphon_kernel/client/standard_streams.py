"""Standard input, output and error of a command: one place for all commands.

What is written to a terminal cannot drive it, whichever way it is written; to a file or a pipe it
goes byte for byte. A stream that is closed, full or has no reader ends the command as it ends other
Unix programs, instead of with a traceback.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from antiphon_kernel.types.constants import ExitCode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_INPUT, _OUTPUT, _ERROR = range(3)

_SURROGATES: Final = "antiphon.surrogates"
"""Error handler: bytes of a file's name as they were, anything else that has no bytes escaped."""

_CONTEXT: Final = 2
"""Code points before a character on which it depends whether that is harmless."""


class StandardStreamError(Exception):
    """Standard input cannot be read, or standard output cannot be written to.

    It is no OSError: what was being worked on has not failed.
    """


class NoReaderError(StandardStreamError):
    """Nobody reads standard output any more."""


def run_command(command: Callable[[], object]) -> None:
    """Run what a program does, and end the process as its standard streams allow.

    A failure of standard input or output is one sentence on standard error and exit code 1; a pipe
    that nobody reads ends the process by SIGPIPE, without a word.
    """
    _fill_closed_descriptors()
    _replace_streams()
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except NoReaderError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except StandardStreamError as error:
        _fail(str(error))
    except FileNotFoundError:
        if _has_current_folder():
            raise
        _fail("the current folder does not exist any more: change to another one, and try again.")


@contextmanager
def reading_input() -> Iterator[None]:
    """Meanwhile standard input is read other than through `sys.stdin`.

    Raises:
        StandardStreamError: in place of OSError.
    """
    try:
        yield
    except OSError as error:
        raise StandardStreamError(f"cannot read standard input: {error.strerror}") from error


class _Input(FileIO):
    def readinto(self, buffer: WriteableBuffer) -> int | None:
        with reading_input():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with reading_input():
            return super().readall()


class _Terminal(FileIO):
    """Writes to a terminal what cannot drive it."""

    def __init__(self, descriptor: int, encoding: str) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._before = ""

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it.

        Raises:
            OSError: if the terminal is gone.
        """
        from antiphon_kernel.text.sanitize import sanitize

        text = self._before + self._decoder.decode(memoryview(data).tobytes())
        neutral = sanitize(text)
        rest = neutral[len(self._before) :].encode(self._encoding, "replace")
        self._before = neutral[-_CONTEXT:]
        while rest:
            rest = rest[super().write(rest) :]
        return memoryview(data).nbytes


class _Output(FileIO):
    """Writes byte for byte; once that has failed, nothing is written any more."""

    def __init__(self, to: FileIO) -> None:
        super().__init__(to.fileno(), "wb", closefd=False)
        self._to = to
        self._failed = False

    def write(self, data: ReadableBuffer) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            return self._to.write(data)
        except OSError as error:
            self._failed = True
            kind = NoReaderError if isinstance(error, BrokenPipeError) else StandardStreamError
            raise kind(f"cannot write to standard output: {error.strerror}") from error


def _fill_closed_descriptors() -> None:
    """Else the next file that is opened would be taken for the standard stream that is closed.

    Reading and writing them fails as if they were closed; errors go nowhere.
    """
    for descriptor, flags in ((_INPUT, os.O_WRONLY), (_OUTPUT, os.O_RDONLY), (_ERROR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)
            os.set_inheritable(opened, True)


def _replace_streams() -> None:
    codecs.register_error(_SURROGATES, _encode_surrogates)
    source = BufferedReader(_Input(_INPUT, "rb", closefd=False))
    sys.stdin = TextIOWrapper(source, encoding=_encoding_of(sys.stdin), errors="replace")
    encoding, shows = _encoding_of(sys.stdout), os.isatty(_OUTPUT)
    output = _Terminal(_OUTPUT, encoding) if shows else FileIO(_OUTPUT, "wb", closefd=False)
    sys.stdout = TextIOWrapper(
        BufferedWriter(_Output(output)),
        encoding=encoding,
        errors=_SURROGATES,
        line_buffering=shows,
    )
    if os.isatty(_ERROR):
        encoding = _encoding_of(sys.stderr)
        sys.stderr = TextIOWrapper(
            BufferedWriter(_Terminal(_ERROR, encoding)),
            encoding=encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _encoding_of(stream: TextIO | None) -> str:
    return stream.encoding if stream is not None else "utf-8"


def _encode_surrogates(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _fail(reason: str) -> None:
    with suppress(OSError):  # there is nobody left to be told
        click.echo(f"antiphon: {reason}", err=True)
    sys.exit(ExitCode.FAILED)
