"""The splitter and the library read together what the library alone would have read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from antiphon_kernel.server.websocket import MessageSplitter

LIMIT = 70_000
Event = tuple[int, bytes, bool]


class Library:
    """The library's parser behind its handshake."""

    def __init__(self) -> None:
        self.parser = ServerProtocol(max_size=LIMIT, state=OPEN)
        self.events: list[Event] = []

    def read(self, data: bytes) -> None:
        if not data:
            return
        self.parser.receive_data(data)
        for event in self.parser.events_received():
            assert not isinstance(event, Request)
            assert isinstance(event, Frame)
            self.events.append((event.opcode, bytes(event.data), event.fin))

    @property
    def failure(self) -> str:
        return repr(self.parser.parser_exc)


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at some places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[at:to] for at, to in zip([0, *places], [*places, len(data)], strict=True)]


def read_both(data: bytes, cuts: list[int]) -> tuple[Library, Library]:
    """The library alone, and the library behind the splitter, which has the same events."""
    alone, behind, splitter = Library(), Library(), MessageSplitter(LIMIT)
    for piece in in_pieces(data, cuts):
        alone.read(piece)
        for messages, others in splitter.split(piece):
            behind.events += [(Opcode.BINARY, message, True) for message in messages]
            behind.read(others)
    return alone, behind


def written(frame: tuple[Opcode, bytes, bool]) -> bytes:
    opcode, payload, fin = frame
    return Frame(opcode, payload, fin).serialize(mask=True)


def message(opcode: Opcode, parts: list[bytes]) -> bytes:
    frames = [(opcode if not at else Opcode.CONT, part, False) for at, part in enumerate(parts)]
    frames[-1] = (*frames[-1][:2], True)
    return b"".join(map(written, frames))


payloads = st.one_of(
    st.binary(max_size=20), st.sampled_from([b"x" * 125, b"y" * 126, b"z" * 66_000])
)
messages = st.builds(
    message,
    st.just(Opcode.BINARY),
    st.lists(payloads, min_size=1, max_size=3),
)
pings = st.builds(
    lambda kind, data: written((kind, data, True)),
    st.sampled_from([Opcode.PING, Opcode.PONG]),
    st.binary(max_size=20),
)
endings = st.one_of(
    st.just(b""),
    st.binary(min_size=1, max_size=20),
    st.just(written((Opcode.CLOSE, b"\x03\xe8", True)) + written((Opcode.BINARY, b"late", True))),
    st.just(Frame(Opcode.BINARY, b"unmasked").serialize(mask=False)),
    st.just(written((Opcode.CONT, b"of nothing", True))),
    st.just(written((Opcode.BINARY, b"x" * (LIMIT + 1), True))),
    st.just(written((Opcode.BINARY, b"never ends", False)) * 2),
)


@given(st.lists(messages | pings, max_size=6), endings, st.lists(st.integers(0), max_size=8))
def test_splitter_before_the_library_gives_what_the_library_alone_gives(
    frames: list[bytes], ending: bytes, cuts: list[int]
) -> None:
    # Whatever header has begun is whole with these: the splitter holds it back until then.
    alone, behind = read_both(b"".join(frames) + ending + bytes(14), cuts)
    assert behind.events == alone.events
    assert behind.failure == alone.failure


def test_message_in_one_frame_is_not_left_to_the_library() -> None:
    splitter = MessageSplitter(LIMIT)
    sent = b"".join(written((Opcode.BINARY, word, True)) for word in (b"one", b"", b"two"))
    assert list(splitter.split(sent)) == [([b"one", b"", b"two"], b"")]


def test_message_is_found_behind_one_that_came_in_parts() -> None:
    splitter = MessageSplitter(LIMIT)
    one, two = (written((Opcode.BINARY, word, True)) for word in (b"one", b"two"))
    assert list(splitter.split(one[:7])) == [([], one[:7])]
    assert list(splitter.split(one[7:] + two[:1])) == [([], one[7:])]
    assert list(splitter.split(two[1:])) == [([b"two"], b"")]
