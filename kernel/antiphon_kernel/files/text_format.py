r"""Between the bytes of a file and the text of a block.

The text has ``\n`` only, and no byte order mark; a format keeps everything else, so that what
nobody edits is written as it was read. Bytes that would not come back the same are no text.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Final, NamedTuple

from antiphon_kernel.files.encodings import guessed_encoding, named_encoding
from antiphon_kernel.text.splice_diff import common_prefix, plan_difference
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.quoting import count_of, quote

_LINE_END: Final = re.compile(r"\r\n|\r|\n")

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, whose mark they begin with.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_LONGEST_CHARACTER: Final = 4
"""Bytes."""

_LETTERS: Final = {"\n": "n", "\r": "r", "\r\n": "c"}
_ENDS: Final = {letter: end for end, letter in _LETTERS.items()}


@dataclass(frozen=True, slots=True)
class TextFormat:
    r"""The way in which a file holds its text.

    `newline` ends the lines that are new: the commonest of the file, None if it has none. `ends`
    has a letter for each line that ends if they are mixed: `n` for ``\n``, `r` for ``\r``, `c`
    for both.
    """

    encoding: str = "utf-8"
    bom: bool = False
    newline: str | None = None
    ends: str | None = None


class Decoded(NamedTuple):
    """The text of a file, and the format in which it is written again."""

    text: str
    format: TextFormat


class Binary(NamedTuple):
    """Bytes that are not certainly a text, with the reason as a sentence."""

    reason: str


def decode(data: bytes, encoding: str | None = None) -> Decoded | Binary:
    """Read a file as text if its encoding is certain, or in an encoding that it had before.

    A byte order mark says it; else it is UTF-8 if it can be, the encoding of a coding line, or
    the only one that gives a plausible text.
    """
    if encoding is not None:
        marks = (mark for mark, name in _MARKS if name == encoding and data.startswith(mark))
        return _read(data, encoding, next(marks, b""))
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _read(data, name, mark)
    if (nul := data.find(b"\0")) >= 0:
        return Binary(f"Byte {nul} is NUL, which is in no text.")
    named = named_encoding(data)
    # What is typed into a file of ASCII is written as its coding line says.
    if data.isascii() and named and isinstance(found := _read(data, named), Decoded):
        return found
    try:
        data.decode()
    except UnicodeDecodeError as error:
        guessed = named or guessed_encoding(data)
        if guessed is None:
            return Binary(f"Byte {error.start} is not UTF-8, and no other encoding is certain.")
        return _read(data, guessed)
    return _read(data, "utf-8")


def decode_part(data: bytes, head: bytes, *, is_last: bool) -> tuple[str, int] | Binary:
    """Read a part of a file to be shown, in the encoding that its first bytes say.

    Returns the text, up to the last line that is whole if there is one, and how many bytes it has.
    What is no character of the encoding becomes the replacement character.
    """
    tried = (decode(head[: len(head) - cut]) for cut in range(_LONGEST_CHARACTER))
    first = next(tried)
    found = next((one for one in (first, *tried) if isinstance(one, Decoded)), first)
    if isinstance(found, Binary):
        return found
    encoding = found.format.encoding
    if not is_last and "\n".encode(encoding) == b"\n":
        data = data[: data.rfind(b"\n") + 1] or data
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = _with_newlines(decoder.decode(data, is_last).removeprefix("\ufeff"))
    return text, len(data) - len(decoder.getstate()[0])


def encode(text: str, format: TextFormat, base: str | None = None) -> bytes:
    r"""Write a text in the format of a file; every line that was there keeps its own end.

    `base` is the text with which the format was decoded, if `text` is another one. A new line
    gets the end of the line above. ``\r\n`` and ``\r`` in `text` are taken for ends of lines.

    Raises:
        AntiphonError: invalid_params if the encoding has no place for a character.
        ValueError: if line ends are mixed and `base` is not the text that they belong to.
    """
    text = _with_newlines(text)
    if format.ends is None:
        written = text.replace("\n", format.newline or "\n")
    else:
        ends = _ends(text, format, text if base is None else base)
        lines = text.split("\n")
        for number, pair in enumerate(pairwise(ends), 1):
            # Around an empty line, these two would be read as one end.
            if pair == ("\r", "\n") and not lines[number]:
                ends[number] = "\r\n"
        written = "".join(map("".join, zip_longest(lines, ends, fillvalue="")))
    if format.bom:
        written = f"\ufeff{written}"
    try:
        data = written.encode(format.encoding)
        # Some encodings write another character that looks alike; NUL makes a file binary.
        read = data.decode(format.encoding).partition("\0")[0]
        if read == written:
            return data
        wrong = common_prefix(written, read)
    except UnicodeError as error:
        wrong = error.start if isinstance(error, UnicodeEncodeError) else 0
    line = len(_LINE_END.findall(written[:wrong]))
    raise invalid_params(
        f"The file is written as {format.encoding}, which has no {quote(written[wrong])}, found"
        f" in line {line}: take the character out, or write the file as UTF-8.",
        expected=format.encoding,
        found=quote(written[wrong]),
        line=line,
    )


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _ends(text: str, format: TextFormat, base: str) -> list[str]:
    """The ends of the lines of `text`: those that `base` has are followed through the changes."""
    kept = [_ENDS[letter] for letter in format.ends or ""]
    if len(kept) != base.count("\n"):
        raise ValueError(f"{count_of(len(kept), 'line end')} for {base.count(chr(10))} lines")
    ends: list[str] = []
    at = taken = drift = 0
    for splice in plan_difference(base, text):
        start = splice.offset - drift
        end = start + splice.deleted
        unchanged = taken + base.count("\n", at, start)
        ends += kept[taken:unchanged]
        above = ends[-1] if ends else format.newline or "\n"
        ends += [above] * splice.inserted.count("\n")
        at, taken = end, unchanged + base.count("\n", start, end)
        drift += len(splice.inserted) - splice.deleted
    return ends + kept[taken:]


def _read(data: bytes, encoding: str, mark: bytes = b"") -> Decoded | Binary:
    """The text in one encoding, if writing it gives the very same bytes."""
    try:
        encoding = codecs.lookup(encoding).name
        read = data[len(mark) :].decode(encoding)
    except UnicodeError as error:
        at = error.start + len(mark) if isinstance(error, UnicodeDecodeError) else 0
        return Binary(f"Byte {at} cannot be read as {encoding}.")
    if "\0" in read:
        return Binary(f"Character {read.index(chr(0))} is NUL, which is in no text.")
    both = read.count("\r\n")
    counts = {"\n": read.count("\n") - both, "\r\n": both, "\r": read.count("\r") - both}
    newline = max(counts, key=counts.__getitem__) if any(counts.values()) else None
    is_mixed = newline is not None and counts[newline] < sum(counts.values())
    ends = "".join(map(_LETTERS.__getitem__, _LINE_END.findall(read))) if is_mixed else None
    decoded = Decoded(_with_newlines(read), TextFormat(encoding, bool(mark), newline, ends))
    try:
        if encode(decoded.text, decoded.format) == data:
            return decoded
    except AntiphonError:
        pass
    return Binary(f"Read as {encoding} and written again, it would not be the same bytes.")
