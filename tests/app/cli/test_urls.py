"""Kernels given by URL."""

from __future__ import annotations

import pytest

from antiphon.cli.errors import CommandError
from antiphon.cli.join import parse_kernel_url
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
