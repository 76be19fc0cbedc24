"""Locations: of the project, of kernels given by URL, and of the one that a command speaks to."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from antiphon.cli.errors import CommandError
from antiphon.cli.join import parse_kernel_url, with_token
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon.locations import data_folder, project_of_data, project_root
from antiphon_kernel.types.constants import ExitCode


@pytest.mark.parametrize(
    ("url", "http", "sync", "token", "context"),
    [
        (
            "ws://127.0.0.1:8123/sync?token=abc",
            "http://127.0.0.1:8123",
            "ws://127.0.0.1:8123/sync",
            "abc",
            None,
        ),
        (
            "ws://127.0.0.1:8123/sync/notes?token=abc",
            "http://127.0.0.1:8123",
            "ws://127.0.0.1:8123/sync",
            "abc",
            "notes",
        ),
        ("http://host:1", "http://host:1", "ws://host:1/sync", None, None),
        ("https://host/team/", "https://host/team", "wss://host/team/sync", None, None),
        ("wss://host/team/sync/", "https://host/team", "wss://host/team/sync", None, None),
    ],
)
def test_url_leads_to_a_kernel(
    url: str, http: str, sync: str, token: str | None, context: str | None
) -> None:
    address, named = parse_kernel_url(url)
    assert (address.http, address.sync, address.token, named) == (http, sync, token, context)


@pytest.mark.parametrize(
    "url", ["", "host:1", "ftp://host/sync", "ws://", "ws://host:99999/sync", "ws://host:x/"]
)
def test_parse_kernel_url_of_other_text_raises_with_example(url: str) -> None:
    with pytest.raises(CommandError, match="expected ws://") as refused:
        parse_kernel_url(url)
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "url", ["ftp://host/sync?token=S3CRET", "ws://?x=1&token=S3CRET#token=S3CRET"]
)
def test_refusal_does_not_repeat_the_token(url: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_kernel_url(url)
    assert "S3CRET" not in refused.value.message


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\x01", "\nX-Other: 1"])
def test_with_token_of_a_variable_takes_it_without_its_line_end_or_does_not_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setenv("ANTIPHON_TOKEN", f"S3CRET{end}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if not end.strip():
        assert with_token("ws://host:1/sync")[0].token == "S3CRET"
        return
    with pytest.raises(CommandError, match="control characters") as refused:
        with_token("ws://host:1/sync")
    assert "S3CRET" not in refused.value.message


URL = "ws://127.0.0.1:8123/sync/notes?token=abc"


@click.command()
@click.argument("context", required=False)
@kernel_options
def probe(context: str | None, kernel: KernelTarget) -> None:
    """Says where the kernel and the context are, without calling it."""
    if context is not None:
        click.echo(f"{kernel.find()().http} {context}")
    else:
        click.echo("own")


@pytest.mark.parametrize(
    ("arguments", "variables", "chosen"),
    [
        ([], {}, "own"),
        (["--url", URL], {}, "joined"),
        ([f"--url={URL}"], {}, "joined"),
        (["other", f"--url={URL}"], {}, "other"),
        ([], {"ANTIPHON_URL": URL}, "joined"),
        (["--data", "there"], {"ANTIPHON_URL": URL}, "own"),
        (["--url", URL], {"ANTIPHON_DATA": "there"}, "joined"),
    ],
)
def test_kernel_option_on_command_line_overrides_environment_as_an_argument_the_urls_context(
    arguments: list[str], variables: dict[str, str], chosen: str
) -> None:
    done = CliRunner().invoke(probe, arguments, env=variables)
    joined = f"http://127.0.0.1:8123 {'notes' if chosen == 'joined' else chosen}"
    assert (done.output, done.exit_code) == (f"{'own' if chosen == 'own' else joined}\n", 0)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--url", URL, "--data", "there"], {}),
        ([], {"ANTIPHON_URL": URL, "ANTIPHON_DATA": "there"}),
    ],
)
def test_kernel_option_naming_two_kernels_is_rejected(
    arguments: list[str], variables: dict[str, str]
) -> None:
    done = CliRunner().invoke(probe, arguments, env=variables)
    assert done.exit_code == 2
    assert "name two kernels" in done.output
    assert "abc" not in done.output


def test_kernel_option_alone_starts_no_kernel(tmp_path: Path) -> None:
    done = CliRunner().invoke(probe, ["--data", str(tmp_path / "new")])
    assert done.exit_code == 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("url", ["-", "", "there", "ftp://there/sync?token=abc"])
def test_kernel_option_with_other_than_address_is_rejected(url: str) -> None:
    done = CliRunner().invoke(probe, ["--url", url])
    assert done.exit_code == 2
    assert "expected ws://" in done.output
    assert "abc" not in done.output


@pytest.mark.parametrize("mark", [".git", ".antiphon"])
def test_project_is_the_nearest_marked_folder_upwards(tmp_path: Path, mark: str) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    (inner / mark).mkdir(parents=True)
    deep = inner / "src" / "deep"
    deep.mkdir(parents=True)
    assert project_root(deep) == inner
    assert data_folder(inner) == inner / ".antiphon"


def test_worktrees_git_file_marks_it_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    (tmp_path / "src").mkdir()
    assert project_root(tmp_path / "src") == tmp_path


def test_data_folder_of_a_project_belongs_to_it_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert project_of_data(tmp_path / "there" / ".antiphon") == tmp_path / "there"
    assert project_of_data(tmp_path / "there" / "data") == tmp_path / "here"


def test_folder_without_marker_is_its_own_project(tmp_path: Path) -> None:
    assert project_root(tmp_path) in (tmp_path, *tmp_path.parents)
    assert (project_root(tmp_path) == tmp_path) or (project_root(tmp_path) / ".git").exists()


def test_search_does_not_go_above_a_repository_or_into_the_home(
    tmp_path: Path, own_home: Path
) -> None:
    (tmp_path / ".antiphon").mkdir()
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    assert project_root(tmp_path / "repository") == tmp_path / "repository"
    (own_home / ".antiphon").mkdir()
    (own_home / "notes").mkdir()
    assert project_root(own_home / "notes") == own_home / "notes"
    assert project_root(own_home) == own_home


def test_search_stops_where_everybody_may_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / ".antiphon").mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / "mine").mkdir()
    assert project_root(shared / "mine") == shared / "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_search_stops_where_the_owner_changes(tmp_path: Path) -> None:
    (tmp_path / "theirs" / ".git").mkdir(parents=True)
    (tmp_path / "theirs" / "mine").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    assert project_root(tmp_path / "theirs" / "mine") == tmp_path / "theirs" / "mine"
