"""What comes from the terminal: keys and pastes, wherever the input was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START

from antiphon.terminal_driver import PasteSafeParser

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


@given(parts=st.lists(st.tuples(typed, pasted), max_size=4), cuts=st.lists(st.integers(1, 9)))
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
