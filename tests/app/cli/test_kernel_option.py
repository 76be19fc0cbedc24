"""Kernel that a command speaks to, however it was named."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from antiphon.cli.kernel_option import KernelTarget, kernel_options

URL = "ws://127.0.0.1:8123/sync/notes?token=abc"


@click.command()
@kernel_options
def probe(kernel: KernelTarget) -> None:
    """Says where the kernel is, without calling it."""
    if kernel.context is not None:
        click.echo(f"{kernel.find()().http} {kernel.context}")
    else:
        click.echo("own")


@pytest.mark.parametrize(
    ("arguments", "variables", "chosen"),
    [
        ([], {}, "own"),
        (["--url", URL], {}, "joined"),
        ([f"--url={URL}"], {}, "joined"),
        ([], {"ANTIPHON_URL": URL}, "joined"),
        (["--data", "there"], {"ANTIPHON_URL": URL}, "own"),
        (["--url", URL], {"ANTIPHON_DATA": "there"}, "joined"),
    ],
)
def test_kernel_option_on_command_line_overrides_environment(
    arguments: list[str], variables: dict[str, str], chosen: str
) -> None:
    done = CliRunner().invoke(probe, arguments, env=variables)
    expected = {"own": "own\n", "joined": "http://127.0.0.1:8123 notes\n"}[chosen]
    assert (done.output, done.exit_code) == (expected, 0)


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
