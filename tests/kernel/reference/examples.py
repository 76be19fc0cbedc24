"""The examples of the tools: read from beside the registry, and played on a real kernel.

An example is one file, kernel/antiphon_kernel/tools/examples/TOOL.json: `given`, the calls that
bring about what it starts from, and `shows`, requests to the tool with a sentence each. `as` says
who calls, `fails` which error is meant. Results are not written down there: they are played.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

import antiphon_kernel
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS, TurnRunner, load_models
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock

FOLDER: Final = Path(antiphon_kernel.__file__).parent / "tools" / "examples"
OWNER: Final = "amy"
MODELS: Final = frozenset({"aria"})
SECRETS: Final = frozenset({"token", "join"})
"""Fields of results that are drawn by chance, or that depend on the machine."""

ALL_TOOLS: Final = Registry((*KERNEL_TOOLS, *TURN_TOOLS))
"""Every tool that a kernel has."""


def kind_of(caller: str) -> PrincipalKind:
    """Return the kind of whoever calls in an example."""
    return PrincipalKind.MODEL if caller in MODELS else PrincipalKind.HUMAN


class Given(BaseModel):
    """A call that an example starts from."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    caller: str = Field(default=OWNER, alias="as")
    tool: str
    params: dict[str, Any] = Field(default_factory=dict)


class Shown(BaseModel):
    """A request, and what it is an example of."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    says: str
    caller: str = Field(default=OWNER, alias="as")
    params: dict[str, Any] = Field(default_factory=dict)
    fails: str | None = None
    """The code of the error that it is an example of."""
    shorten: int | None = None
    """Show so many entries of the lists in the answer."""


class Example(BaseModel):
    """One file."""

    model_config = ConfigDict(extra="forbid")

    given: list[Given] = Field(default_factory=list)
    shows: list[Shown] = Field(min_length=1)


class Played(BaseModel):
    """Answers to the requests of an example."""

    example: Example
    answers: list[dict[str, Any]]


class CountingIds(IdSource):
    """Ids that are the same every time."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._count = 0

    def uuid7(self) -> str:
        self._count += 1
        return f"{self._clock.now_ms():012x}7{self._count:03x}8{self._count * 0x9E3779B9:015x}"

    def client_id(self) -> int:
        self._count += 1
        return 1000 + self._count


def read_example(tool: str) -> Example | None:
    """The example of a tool; None if there is no file."""
    path = FOLDER / f"{tool}.json"
    if not path.exists():
        return None
    return Example.model_validate_json(path.read_text("utf-8"))


Rewrite = Callable[[Kernel, dict[str, Any]], dict[str, Any]]
"""Parameters of a call, changed before it is made."""


async def play(
    tool: str, example: Example, rewrite: Rewrite = lambda kernel, params: params
) -> Played:
    """Make the calls of an example on a new kernel.

    Raises:
        AssertionError: if a call fails that is not meant to, or does not that is.
    """
    async with _stage() as stage:
        for call in example.given:
            answer = await stage.call(call.caller, call.tool, call.params)
            assert "error" not in answer, f"{tool}: given {call.tool}: {answer}"
        answers = []
        for shown in example.shows:
            answer = await stage.call(shown.caller, tool, rewrite(stage.kernel, shown.params))
            code = answer.get("error", {}).get("code")
            assert code == shown.fails, f"{tool}: {shown.says}: {answer}"
            answer = hide_secrets(answer)
            answers.append(shortened(answer, shown.shorten) if shown.shorten else answer)
    return Played(example=example, answers=answers)


class _Stage:
    def __init__(self, kernel: Kernel, clock: ManualClock) -> None:
        self.kernel = kernel
        self._clock = clock
        self._actors: dict[str, Actor] = {}

    async def call(self, caller: str, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        self._clock.ms += 2_000
        if caller not in self._actors:
            kind = kind_of(caller)
            principal = await self.kernel.principal(caller, kind)
            self._actors[caller] = self.kernel.open_session(principal, "unix")
        try:
            return await self.kernel.call(self._actors[caller], tool, params)
        except AntiphonError as error:
            return {"error": error.as_json()}


@asynccontextmanager
async def _stage() -> AsyncIterator[_Stage]:
    clock = ManualClock(1_790_000_000_000)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "project"
        kernel = await Kernel.open(
            data / "data",
            data,
            registry=ALL_TOOLS,
            owner=OWNER,
            clock=clock,
            ids=CountingIds(clock),
        )
        runner = TurnRunner(kernel, load_models((), demo=False, speed=1.0))
        try:
            yield _Stage(kernel, clock)
        finally:
            await runner.close()
            await kernel.close()


def hide_secrets(value: Any, name: str = "") -> Any:
    """`value` with what is different each time replaced by dots."""
    if name in SECRETS:
        return "…"
    if isinstance(value, dict):
        return {key: hide_secrets(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [hide_secrets(one) for one in value]
    return value


def shortened(answer: dict[str, Any], entries: int) -> dict[str, Any]:
    """`answer` with dots for what its lists hold beyond the first entries."""
    return {
        name: [*value[:entries], "…"] if isinstance(value, list) and value[entries:] else value
        for name, value in answer.items()
    }


def as_json(value: Any, width: int = 96) -> str:
    """JSON on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= width else json.dumps(value, ensure_ascii=False, indent=2)
