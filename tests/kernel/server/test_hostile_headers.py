"""A header value has the same verdict at every door, and whatever comes in can be read.

`ANTIPHON_CASES` says how many values are tried.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.contexts import block_info
from antiphon_kernel.maintenance.run_checks import Check, run_checks
from antiphon_kernel.transfer import importing
from antiphon_kernel.validation import client_rules
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.hostile_headers import (
    CASES,
    Case,
    HeaderDoors,
    read_everything,
    until_equal,
)

TOGETHER = 10
"""Values that one kernel is given."""
EXAMPLES = max(1, int(os.environ.get("ANTIPHON_CASES", "10")) // TOGETHER)


class Records(logging.Handler):
    """Log records from a level on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def nothing_fails() -> Iterator[None]:
    """Nothing logs an error or a traceback meanwhile."""
    handler = Records()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    bad = [
        one.getMessage() for one in handler.records if one.exc_info or one.levelno >= logging.ERROR
    ]
    assert bad == []


async def send(served: ServedKernel, cases: Sequence[Case]) -> None:
    """Send each value by every door, beside an honest client."""
    honest = await served.replica("bo")
    states: list[ReplicaState] = []
    honest.state_changed.listen(lambda: states.append(honest.state))
    doors = await HeaderDoors.of(served)
    for case in cases:
        verdicts = await doors.verdicts(case)
        assert verdicts == dict.fromkeys(verdicts, case.sound), case
    await read_everything(doors)
    await until_equal(served, honest)
    assert set(states) <= {ReplicaState.LIVE}


async def send_everywhere(folder: Path, cases: Sequence[Case]) -> None:
    with nothing_fails():
        async with served_kernel(folder) as served:
            await send(served, cases)
        report = await run_checks(folder / "data")
    assert [str(one) for one in report.all() if one.check is not Check.ANSWERS] == []


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(CASES, min_size=TOGETHER, max_size=TOGETHER))
def test_header_values_have_the_same_verdict_at_every_door(cases: list[Case]) -> None:
    with tempfile.TemporaryDirectory(prefix="antiphon-headers-") as folder:
        asyncio.run(send_everywhere(Path(folder), cases))


DEEP = Case("metadata", '{"a":' * 1_000 + "1" + "}" * 1_000, sound=False)
HALF = Case("metadata", r'{"a": "\ud800"}', sound=False)
ODD = Case("tool_kind", '"\\u001b[31m"', sound=False)


@pytest.mark.parametrize(
    ("module", "check", "door", "case"),
    [
        *((client_rules, "check_field", "raw draft", case) for case in (DEEP, HALF, ODD)),
        (block_info, "check_value", "tool", ODD),
        (importing, "check_value", "import", ODD),
    ],
)
async def test_header_values_without_the_check_of_a_door_come_in_by_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    check: str,
    door: str,
    case: Case,
) -> None:
    monkeypatch.setattr(module, check, lambda *_, **__: None)
    with pytest.raises(AssertionError, match=f"'{door}': True"):
        await send_everywhere(tmp_path, [case])


async def test_raw_draft_is_no_summary_and_no_attached_file(served: ServedKernel) -> None:
    doors = await HeaderDoors.of(served)
    before = await served.call("context.layout")
    for field, text in (
        ("metadata", '{"type": "conv.range.summary"}'),
        ("blob", json.dumps("a" * 64)),
        ("media_type", '"text/plain"'),
        ("edited_after_done", "true"),
    ):
        assert await doors.raw(Case(field, text, sound=False)) is False, field
    assert await served.call("context.layout") == before


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


DAMAGED = [
    *(Case("metadata", nested(depth), sound=False) for depth in (65, 200, 260, 945, 20_000)),
    Case("input", json.dumps("[" * 2_000), sound=False),
    HALF,
    Case("metadata", r'{"a": ["\udfff"], "\ud800": 1e400}', sound=False),
    Case("exit_code", "1e308", sound=False),
    Case("stopped_by", '"root x"', sound=False),
    Case("created", json.dumps("x" * 10_000), sound=False),
    ODD,
]


async def test_damaged_headers_of_an_earlier_version_are_read_copied_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_fails():
        async with served_kernel(tmp_path) as served:
            doors = await HeaderDoors.of(served)
            with monkeypatch.context() as earlier:
                earlier.setattr(client_rules, "check_field", lambda *_: None)
                earlier.setattr(client_rules, "TOOLS_ONLY", ())
                for case in DAMAGED:
                    assert await doors.raw(case), case
            damaged = list(doors.made)
            await read_everything(doors)
            await served.stop()
            report = await run_checks(tmp_path / "data")
            found = [str(one) for one in report.all() if one.context == "default"]
            assert len(found) == len(damaged)
            for block, case in zip(damaged, DAMAGED, strict=True):
                (finding,) = [one for one in found if block in one]
                assert finding.startswith("default: header:")
                assert case.field in finding
            assert [one for one in report.all() if one.context != "default"] == []
            await served.start()
            status, listed = await doors.ask("block.list", {})
            assert status == 200
            assert set(damaged) <= {one["block_id"] for one in listed["blocks"]}
