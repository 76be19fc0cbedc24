"""What released versions have written is opened by this one; nobody changes it."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.replay.replay import Replay
from antiphon.settings import SettingsStore
from antiphon_kernel.client.address import stated_address
from antiphon_kernel.config import load_config
from antiphon_kernel.providers.recording import parse_recordings
from tests.e2e.machine import Machine
from tests.released.__main__ import DATABASES, FOLDER, READ, SUMS, read_all

RELEASES = sorted(path.parent for path in FOLDER.parent.glob(f"*/{SUMS}"))


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def answers(release: Path) -> list[Any]:
    """Return what the version itself has answered to READ."""
    return [json.loads(one) for one in (release / "answers.jsonl").read_text().splitlines()]


@pytest.fixture
def opened(machine: Machine, release: Path) -> Machine:
    """Make the data folder of the version that of the machine's project."""
    machine.data.mkdir(mode=0o700)
    for name in DATABASES:
        unpack(release / f"{name}.gz", machine.data / name)
    (machine.project / "README.md").write_text("# A project\n\nWith two lines.\n")
    machine.succeed("trust", "--yes")
    return machine


def unpack(packed: Path, target: Path) -> None:
    target.touch(mode=0o600)
    target.write_bytes(gzip.decompress(packed.read_bytes()))


def missing(now: Any, then: Any, path: str = "") -> list[str]:
    """Return what is in an answer then and not in the one now, which may say more."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [one for key in then for one in missing(now.get(key), then[key], f"{path}.{key}")]
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        pairs = enumerate(zip(now, then, strict=True))
        return [one for at, pair in pairs for one in missing(*pair, f"{path}[{at}]")]
    return [] if now == then else [f"{path} was {then!r} and is {now!r}"]


def test_files_of_a_release_are_those_that_it_has_written(release: Path) -> None:
    listed = dict(line.split("  ")[::-1] for line in (release / SUMS).read_text().splitlines())
    there = {path.name: path for path in release.iterdir() if path.name != SUMS}
    sums = {name: hashlib.sha256(one.read_bytes()).hexdigest() for name, one in there.items()}
    assert sums == listed
    assert sum(one.stat().st_size for one in there.values()) < 300_000


def test_database_of_a_release_opened_here_says_what_it_said_there(
    opened: Machine, release: Path, answers: list[Any]
) -> None:
    for (tool, params), now, then in zip(READ, read_all(opened), answers, strict=True):
        assert missing(now, then, f"{tool} {params}") == []
    invitation = json.loads((release / "invitation.json").read_text())
    token = {"ANTIPHON_TOKEN": invitation["token"]}
    asked = ("call", "session.whoami", "--url", stated_address(opened.data).sync)
    guest = json.loads(opened.succeed(*asked, env=token).stdout)
    assert (guest["username"], guest["role"]) == ("cleo", "editor")
    assert json.loads(opened.succeed("doctor", "--json").stdout)["findings"] == []


def test_export_of_a_release_imported_here_has_its_texts_and_authors(
    machine: Machine, release: Path, answers: list[Any]
) -> None:
    machine.succeed("import", str(release / "export.jsonl"), "--label", "default-then")
    blocks = machine.call(machine.data, "block.list", context="default-then")["blocks"]
    fields = ("kind", "role", "status", "username", "length", "summary")
    now, then = (
        [[one[each] for each in fields] for one in x] for x in (blocks, answers[0]["blocks"])
    )
    assert now == then
    blame = machine.call(machine.data, "block.blame", block_id=blocks[0]["block_id"])["runs"]
    whole = next(one for (tool, _), one in zip(READ, answers, strict=True) if tool == "block.blame")
    runs = [
        [(one["start"], one["end"], one["username"]) for one in x] for x in (blame, whole["runs"])
    ]
    assert runs[0] == runs[1]


def test_backup_of_a_release_restored_here_has_its_contexts(
    machine: Machine, release: Path, answers: list[Any]
) -> None:
    unpack(release / "backup.db.gz", machine.home / "backup.db")
    machine.succeed("restore", str(machine.home / "backup.db"))
    now = machine.call(machine.data, "block.list", context="tidy")["blocks"]
    assert missing(now, answers[2]["blocks"]) == []


def test_settings_recording_and_replay_of_a_release_are_read_without_a_problem(
    release: Path, tmp_path: Path, answers: list[Any]
) -> None:
    store = SettingsStore(release, tmp_path)
    settings = store.read()
    assert (settings.theme, settings.gutter, settings.sidebar) == ("mine", "wide", True)
    assert dict(settings.keys) == {"undo": ("ctrl+g",), "next_cell": ("down", "n")}
    assert store.problems == ()
    config, _ = load_config(release, tmp_path, {}, lambda path, content: False)
    assert config.problems == () and [one.name for one in config.models] == ["mine"]
    parse_recordings((release / "export.recording").read_text(), "it", default_model="m")
    with (release / "export.replay").open("rb") as lines:
        replay = Replay.read(lines)
    first = answers[0]["blocks"][0]["block_id"]
    assert replay.last.blocks[first].text == answers[3]["value"]
