"""Header values that no tool would write, some that one would, and every door they can come by."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st
from pycrdt import Doc, Map, Text
from websockets.exceptions import ConnectionClosed

from antiphon_kernel.types.enums import BlockKind, DriftKind, Role, Status, ToolKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import DRAFT_SEQ_LIMIT, DRAFT_SEQ_MIN
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.frames import Ack, SyncStep1, SyncUpdate
from tests.kernel.served import ServedKernel
from tests.kernel.server.test_rpc import post
from tests.waiting import PATIENCE, until

NEW: Final = {"role": "user", "kind": "text", "content": "x"}
CREATED: Final = "2026-01-01T00:00:00.000Z"
REFUSED: Final = 4403


@dataclass(frozen=True)
class Case:
    """One header field as somebody sends it, and whether a tool would have written it so."""

    field: str
    text: str
    """The JSON of the value as it stands in a request; of `metadata` the object itself."""
    sound: bool

    @property
    def stored(self) -> Any:
        """Return the value that a raw update has under the field's key."""
        return self.text if self.field == "metadata" else json.loads(self.text)

    def __repr__(self) -> str:
        text = self.text if len(self.text) < 200 else f"{self.text[:100]}…{self.text[-20:]}"
        return f"Case({self.field}, {text}, sound={self.sound})"


# What is sent

_WORDS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_KEYS: Final = _WORDS.map(lambda word: f"own {word}")
_SCALARS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    _WORDS,
)
_VALUES: Final = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_PLAIN: Final = st.builds(
    lambda value, ascii_only: (json.dumps(value, ensure_ascii=ascii_only), True),
    st.dictionaries(_KEYS, _VALUES, max_size=4),
    st.booleans(),
)


def _wrapped(inner: str, layers: list[str]) -> str:
    for layer in layers:
        inner = f"[1, {inner}]" if layer == "list" else f'{{"own": {inner}}}'
    return f'{{"own": {inner}}}'


def _inside(values: st.SearchStrategy[tuple[str, bool]]) -> st.SearchStrategy[tuple[str, bool]]:
    layers = st.lists(st.sampled_from(["list", "object"]), max_size=4)
    return st.builds(lambda one, around: (_wrapped(one[0], around), one[1]), values, layers)


_DEPTHS: Final = st.one_of(
    st.integers(2, 64), st.sampled_from([64, 65, 66]), st.integers(65, 260), st.integers(260, 2_000)
)
_DEEP: Final = st.builds(
    lambda depth, opens: (
        '{"own":' + opens * (depth - 1) + "1" + _closing(opens) * (depth - 1) + "}",
        depth <= 64,
    ),
    _DEPTHS,
    st.sampled_from(["[", '{"own":', '{"\\u006fwn":']),
)


def _closing(opens: str) -> str:
    return "]" if opens == "[" else "}"


_STRINGS: Final = st.sampled_from(
    [
        (r'"\ud800"', False),
        (r'"x\udfff"', False),
        (r'"\ude00\ud83d"', False),
        (r'"\ud83d\ude00"', True),
        (r'{"\ud800": 1}', False),
        (r'{"\u001b[31m": "\u0000\u0007"}', True),
        ('"\x1b[31m"', False),
        ('"\x00"', False),
        (r'"\x41"', False),
        ('"\u202e\u2028\x9b\ufeff"', True),
    ]
)
_NUMBERS: Final = st.one_of(
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1e400", "-1e999"]).map(lambda n: (n, False)),
    st.sampled_from(["1e308", "-0", "0.1", "9007199254740993", "1E-999"]).map(lambda n: (n, True)),
    st.integers(0, 300).map(lambda zeros: ("1" + "0" * zeros, True)),
    st.integers(309, 6_000).map(lambda zeros: ("-1" + "0" * zeros, False)),
    st.sampled_from(["01", "+1", ".5", "1.", "0x10", "1_000"]).map(lambda n: (n, False)),
)
_REPEATED: Final = st.sampled_from(
    ['{"own": 1, "own": 1}', r'{"a": 1, "\u0061": 2}', '{"": {}, "b": [], "": 0}']
).map(lambda text: (text, False))
_MALFORMED: Final = st.sampled_from(
    [
        *("[]", "[{}]", "null", "3", "true", '"{}"', "", " ", "{", "{]", '{"own":}', '{"own" 1}'),
        *("{'own': 1}", "{} x", "\ufeff{}", "/**/{}", "{own: 1}", '{"own": 1,}', "NaN"),
        "[" * 2_000,
    ]
).map(lambda text: (text, False))
_LARGE: Final = st.sampled_from([(1_000_000, True), (1_000_001, False), (1_500_000, False)]).map(
    lambda size: (f'{{"own": "{"x" * (size[0] - 11)}"}}', size[1])
)
_DOCUMENTS: Final = st.one_of(
    _PLAIN,
    _DEEP,
    *(_inside(one) for one in (_STRINGS, _NUMBERS, _REPEATED)),
    _MALFORMED,
    st.just(("{}", True)),
    st.integers(0, 19).flatmap(lambda one: _PLAIN if one else _LARGE),
)


def _json_case(field: str, document: tuple[str, bool]) -> Case:
    text, sound = document
    return Case(field, text if field == "metadata" else json.dumps(text), sound)


JSON_CASES: Final = st.builds(_json_case, st.sampled_from(["metadata", "input"]), _DOCUMENTS)

LINES: Final = ("tool_name", "tool_call_id", "path", "language", "stop_reason")
FLAGS: Final = ("is_error", "truncated", "collapsed", "excluded", "ephemeral")
CLOSED: Final[dict[str, list[str]]] = {
    "tool_kind": list(ToolKind),
    "drift_kind": list(DriftKind),
    "kind": list(BlockKind),
    "role": list(Role),
    "status": list(Status),
}
IDS: Final[dict[str, list[Any]]] = {
    "source_context": ["a" * 32],
    "source_block": [f"{'a' * 32}.{'b' * 32}.7", f"{'0' * 32}.{'f' * 32}.9007199254740991"],
}
CREATIONS: Final[list[Any]] = ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", CREATED, ""]
STRANGE: Final = [
    *("\x1b[31m", "\x00", "a\nb", "\t", "\x7f", "\x9b2J", "\u2028", "a\u2029b"),
    *("x" * 4_097, "x" * 20_000),
]
"""No line of text that a header has."""
TIMES: Final = [
    *("now", "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000+00:00", "0" * 24),
    *("1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "10000-01-01T00:00:00.000Z"),
    *("20260101T000000.000Z", "2026-02-30T00:00:00.000Z", "2026-01-01t00:00:00.000z", "x" * 10_000),
]
OTHERS: Final = [None, True, False, 0, -1, 3, 2**53 - 1, 2**53, 3.0, 1.5, 1e308, [], ["a"], {}]

_ANYTHING: Final = st.one_of(
    st.sampled_from(OTHERS),
    st.sampled_from(STRANGE),
    st.sampled_from(["", "x", "ü 漢字😀", "\u202e", "not one of them", "x" * 4_096, "shell"]),
    st.sampled_from(TIMES),
    st.sampled_from([float("nan"), float("inf"), 10**30, 10**400]),
    st.sampled_from(["A" * 32, "a" * 31, f"{'a' * 32}.{'b' * 32}.-1", "default.amy.1"]),
    _WORDS,
)


def _fitting(field: str) -> list[Any]:
    if field in CLOSED:
        return list(map(str, CLOSED[field]))
    if field in FLAGS:
        return [True, False]
    if field in IDS:
        return IDS[field]
    if field == "created":
        return CREATIONS
    return [0, -15, 2**53 - 1] if field == "exit_code" else ["a", "", "x y"]


def _is_sound(field: str, value: Any) -> bool:
    """Return whether the tools would take a value, decided in a few lines of its own."""
    if field in FLAGS:
        return isinstance(value, bool)
    if field == "exit_code":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and value == value // 1 and abs(value) < 2**53
    if not isinstance(value, str):
        return False
    if field in (*LINES, "order"):
        controls = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
        return len(value) <= 4_096 and not any(chr(code) in value for code in controls)
    return value in _fitting(field)


def _field_case(field: str, value: Any) -> Case:
    return Case(field, json.dumps(value), _is_sound(field, value))


FIELD_CASES: Final = st.sampled_from(
    [*LINES, *FLAGS, *CLOSED, *IDS, "exit_code", "created", "order"]
).flatmap(
    lambda field: st.builds(
        _field_case, st.just(field), st.one_of(st.sampled_from(_fitting(field)), _ANYTHING)
    )
)
CASES: Final = st.one_of(JSON_CASES, FIELD_CASES)

_NO_TOOLS_PARAMETER: Final = ("created", "order", "kind", "role", "status")
"""Fields that a raw draft and an export hold, and that `block.create` decides or asks otherwise."""


# Where it is sent


class HeaderDoors:
    """A served kernel, and each way of bringing one header field into a new block of it."""

    def __init__(
        self, served: ServedKernel, head: list[str], line: dict[str, Any], end: str
    ) -> None:
        self.served = served
        self._head = head
        self._line = line
        self._end = end
        self._random = random.Random(7)
        self.made: list[str] = []
        """Blocks that came in."""
        self.imported: list[str] = []
        """Contexts that came in."""

    @classmethod
    async def of(cls, served: ServedKernel) -> HeaderDoors:
        """The doors of a kernel, which gets a context whose export is the model of imports."""
        await served.kernel.create_context("model")
        await served.block("x", context="model")
        exported = await served.call("context.export", context="model")
        *head, block, end = exported["text"].splitlines()
        return cls(served, head, json.loads(block), end)

    async def verdicts(self, case: Case) -> dict[str, bool]:
        """By door whether the case came in; without the doors that cannot express it."""
        ways: dict[str, Callable[[Case], Awaitable[bool | None]]] = {
            "raw draft": self.raw,
            "import": self._import,
        }
        if case.field not in _NO_TOOLS_PARAMETER:
            ways |= {"tool": self._tool, "HTTP": self._http}
        found = {name: await way(case) for name, way in ways.items()}
        return {name: one for name, one in found.items() if one is not None}

    async def raw(self, case: Case) -> bool | None:
        """Whether it came in with a draft of a stock client; None if no update can hold it."""
        served, context = self.served, await self.served.context()
        doc: Doc[Any] = Doc(client_id=self._random.randrange(2**32, 2**53))
        doc.apply_update(context.document.update_since())
        number = self._random.randrange(DRAFT_SEQ_MIN, DRAFT_SEQ_LIMIT)
        block = f"{context.id}.{served.me.principal.id}.{number}"
        value = case.stored
        if isinstance(value, int) and abs(value) >= 2**63:
            return None
        fields = {"status": "pending", "created": CREATED, case.field: value}
        with doc.transaction():
            doc.get("blocks", type=Map)[block] = Map({**fields, "content": Text("x")})
        update = doc.get_update(context.document.state_vector())
        client = await served.raw(query="ack=1", close_timeout=0.01)
        await client.send(SyncStep1(b"\x00"), SyncUpdate(update))
        try:
            await client.next(Ack, lambda ack: ack.count == 1)
        except ConnectionClosed:
            code, reason = await client.closed()
            if code != REFUSED:
                raise AssertionError(f"closed with {code}: {reason}") from None
            return False
        await client.socket.close()
        self.made.append(block)
        return True

    async def _tool(self, case: Case) -> bool | None:
        try:
            names_kept: list[int] = []

            def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
                names_kept.append(len(pairs) - len(dict(pairs)))
                return dict(pairs)

            value = json.loads(case.text, object_pairs_hook=members)
        except (ValueError, RecursionError):
            return None
        if any(names_kept):
            return None
        metadata = value if case.field == "metadata" else {case.field: value}
        return await self._made(self.served.me, {**NEW, "metadata": metadata})

    async def _made(self, actor: Actor, params: dict[str, Any]) -> bool:
        try:
            made = await self.served.kernel.call(actor, "block.create", params)
        except AntiphonError:
            return False
        self.made.append(str(made["block_id"]))
        return True

    async def _http(self, case: Case) -> bool:
        inner = case.text if case.field == "metadata" else f'{{"{case.field}": {case.text}}}'
        body = f'{json.dumps(NEW)[:-1]}, "metadata": {inner}}}'
        status, answer = await self.ask("block.create", body)
        if status == 200:
            self.made.append(answer["block_id"])
        elif status not in (400, 413):
            raise AssertionError(f"{status} for {case}: {answer}")
        return status == 200

    async def ask(self, tool: str, params: str | dict[str, Any]) -> tuple[int, Any]:
        body = params if isinstance(params, str) else json.dumps(params)
        return await post(self.served, tool, body.encode())

    async def _import(self, case: Case) -> bool:
        mark = '"the hostile value"'
        header = {**self._line["header"], case.field: json.loads(mark)}
        line = json.dumps({**self._line, "header": header}).replace(mark, case.text)
        label = f"imported-{len(self.imported)}"
        params = {"text": "\n".join([*self._head, line, self._end]), "label": label}
        try:
            await self.served.kernel.call(self.served.me, "context.import", params)
        except AntiphonError:
            return False
        self.imported.append(label)
        return True


async def read_everything(doors: HeaderDoors) -> None:
    """Ask over HTTP for all that has come in, in every way; each answer must come."""

    async def read(tool: str, **params: Any) -> dict[str, Any]:
        status, answer = await doors.ask(tool, params)
        assert status == 200, f"{tool} {params}: {status} {str(answer)[:300]}"
        found: dict[str, Any] = answer
        return found

    for block in doors.made:
        for tool in ("block.read", "block.blame", "block.history"):
            await read(tool, block_id=block)
    for number, label in enumerate(["default", *doors.imported]):
        listed = await read("block.list", context=label, limit=1_000)
        synced = await read("block.sync", context=label, limit=1_000)
        assert len(listed["blocks"]) == len(synced["new_blocks"])
        await read("context.export", context=label, format="markdown")
        exported = await read("context.export", context=label)
        again = await read("context.import", text=exported["text"], label=f"again-{number}")
        forked = await read("context.fork", context=label, label=f"fork-{number}")
        assert listed["blocks"]
        assert forked["blocks"] == again["blocks"] == len(listed["blocks"])
        await read("block.create", **NEW, context=label)


async def until_equal(served: ServedKernel, replica: Any) -> None:
    """Wait until a replica has all that the kernel has."""
    context = await served.context()
    await until(
        lambda: replica.document.state_vector() == context.document.state_vector(),
        "the honest client has everything",
        PATIENCE,
    )
