"""Input from the terminal: keys and pastes, wherever it was cut."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START
from textual.app import App
from textual.message import Message

from antiphon.textual_patches.driver import (
    ESCAPE_SECONDS,
    LONGEST_PASTE,
    MESSAGES_AHEAD,
    READ_BYTES,
    BackgroundReported,
    InputPaused,
    PasteRefused,
    PasteSafeParser,
    TerminalDriver,
)
from tests.waiting import until

typed = st.text("abcé\u3000\u200d", min_size=1)
pasted = st.text("a\n\r\t\x1b[2013~m\x00\u200d").filter(
    lambda text: BRACKETED_PASTE_END not in text
)


def heard(parser: PasteSafeParser, pieces: list[str]) -> list[tuple[bool, str]]:
    """Pastes (True) and what was typed between them (False)."""
    out: list[tuple[bool, str]] = []
    for event in (event for piece in pieces for event in parser.feed(piece)):
        if isinstance(event, events.Paste):
            out.append((True, event.text))
        else:
            assert isinstance(event, events.Key) and event.character is not None
            if out and not out[-1][0]:
                out[-1] = (False, out[-1][1] + event.character)
            else:
                out.append((False, event.character))
    return out


@given(parts=st.lists(st.tuples(typed, pasted), max_size=3), cuts=st.lists(st.integers(1, 9)))
def test_pastes_and_keys_arrive_whole_and_in_order(
    parts: list[tuple[str, str]], cuts: list[int]
) -> None:
    data = "".join(
        f"{keys}{BRACKETED_PASTE_START}{paste}{BRACKETED_PASTE_END}" for keys, paste in parts
    )
    pieces = []
    for cut in cuts:
        pieces.append(data[:cut])
        data = data[cut:]
    pieces = [piece for piece in [*pieces, data] if piece]
    expected = [part for keys, paste in parts for part in ((False, keys), (True, paste))]
    assert heard(PasteSafeParser(), pieces) == expected


def test_keys_work_after_a_paste_with_escapes() -> None:
    parser = PasteSafeParser()
    paste = f"{BRACKETED_PASTE_START}four\x1b[31mred\x1b{BRACKETED_PASTE_END}"
    got = list(parser.feed(f"{paste}\x1b[A\x1b[<0;3;4M{paste}x"))
    assert [type(event) for event in got] == [
        events.Paste, events.Key, events.MouseDown, events.Paste, events.Key,
    ]  # fmt: skip
    assert isinstance(got[0], events.Paste) and got[0].text == "four\x1b[31mred\x1b"
    assert isinstance(got[1], events.Key) and got[1].key == "up"


@given(cuts=st.lists(st.integers(1, 9)), end=st.sampled_from(["\x07", "\x1b\\"]))
def test_report_of_the_background_between_keys_is_no_key(cuts: list[int], end: str) -> None:
    data, pieces = f"a\x1b]11;rgb:ffff/8080/00{end}b", []
    for cut in [*cuts, len(data)]:
        pieces.append(data[:cut])
        data = data[cut:]
    parser = PasteSafeParser(clock=lambda: 0)
    got = [event for piece in pieces if piece for event in parser.feed(piece)]
    assert [type(event) for event in got] == [events.Key, BackgroundReported, events.Key]
    assert isinstance(got[1], BackgroundReported) and got[1].colour.rgb == (255, 128, 0)


def test_sequence_that_is_no_report_becomes_keys_after_a_while() -> None:
    now = 0.0
    parser = PasteSafeParser(clock=lambda: now)
    assert list(parser.feed("\x1b]1")) == []
    now = 2 * ESCAPE_SECONDS
    got = [*parser.tick(), *parser.feed("x"), *parser.feed("")]
    assert [event.key for event in got if isinstance(event, events.Key)][-2:] == ["1", "x"]


def keys_of(pieces: list[str]) -> list[str]:
    """Names of the keys, an escape at the end included."""
    parser = PasteSafeParser(clock=lambda: 0)
    got = [event for piece in [*pieces, ""] for event in parser.feed(piece)]
    return [event.key for event in got if isinstance(event, events.Key)]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1bj", ["escape", "j"]),
        ("\x1bG", ["escape", "G"]),
        ("\x1b ", ["escape", "space"]),
        ("\x1b/x", ["escape", "slash", "x"]),
        ("\x1b\x1bu", ["escape", "escape", "u"]),
        ("\x1b\x10", ["escape", "ctrl+p"]),
        ("\x1b\t", ["escape", "tab"]),
        ("j\x1b", ["j", "escape"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b[106;3u", ["alt+j"]),
        ("\x1bb\x1bf", ["ctrl+left", "ctrl+right"]),
        ("\x1b\r", ["enter"]),
    ],
)
def test_esc_is_a_key_whatever_comes_in_the_same_packet(sent: str, keys: list[str]) -> None:
    for cut in range(len(sent)):
        assert keys_of([sent[:cut], sent[cut:]][not cut :]) == keys, cut


def test_esc_alone_is_heard_when_nothing_has_followed_it_for_a_while() -> None:
    now = [0.0]
    parser = PasteSafeParser(clock=lambda: now[0])
    assert [*parser.feed("\x1b"), *parser.tick()] == []
    now[0] += ESCAPE_SECONDS
    assert [event.key for event in parser.tick() if isinstance(event, events.Key)] == ["escape"]


@pytest.mark.parametrize(("more", "is_taken"), [(0, True), (1, False)])
def test_paste_that_is_too_long_is_refused_and_the_next_one_taken(
    more: int, is_taken: bool
) -> None:
    parser = PasteSafeParser()
    text = "p" * (LONGEST_PASTE + more) + BRACKETED_PASTE_END + BRACKETED_PASTE_START + "next"
    pieces = [text[at : at + READ_BYTES] for at in range(0, len(text), READ_BYTES)]
    fed = [BRACKETED_PASTE_START, *pieces, BRACKETED_PASTE_END]
    first, second = [event for piece in fed for event in parser.feed(piece)]
    if is_taken:
        assert isinstance(first, events.Paste) and len(first.text) == LONGEST_PASTE
    else:
        assert isinstance(first, PasteRefused) and first.characters == LONGEST_PASTE + 1
    assert isinstance(second, events.Paste) and second.text == "next"


class SlowApp(TerminalDriver):
    """A driver whose app handles nothing before it is asked to."""

    def __init__(self, file: int) -> None:
        super().__init__(App())
        self.fileno = file
        self.given: list[Message] = []

    def process_message(self, message: Message) -> None:
        self.given.append(message)


async def test_driver_reads_on_when_the_app_has_handled_what_it_was_given() -> None:
    theirs, ours = os.pipe()
    driver, sent = SlowApp(theirs), 3 * READ_BYTES
    reading = threading.Thread(target=driver.run_input_thread)
    reading.start()
    os.write(ours, b"k" * sent)
    keys = 0
    while keys < sent:
        await until(lambda: driver.given and isinstance(driver.given[-1], InputPaused), "a pause")
        given, driver.given = driver.given, []
        assert len(given) <= MESSAGES_AHEAD + READ_BYTES
        keys += sum(isinstance(one, events.Key) for one in given)
        pause = given[-1]
        assert isinstance(pause, InputPaused)
        pause.resume()
    os.close(ours)
    reading.join()
    os.close(theirs)
    assert keys == sent
