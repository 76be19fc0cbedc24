"""Server of one GGUF file, run as a process of its own: a C++ thread pool that ends with it.

    python -m antiphon_kernel.providers.local_server

Reads one line of JSON from stdin, a `LocalServerSettings`, and writes one to stdout, a
`LocalServerReport`. Serves Chat Completions on the loopback interface until stdin ends, which it
does when the process that started it is gone, however it went.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class LocalServerSettings:
    """Settings of a server; sent through a pipe, so that the key is in no list of processes."""

    path: str
    """Path of the model's file."""
    key: str
    """Key without which no request is answered."""
    context_tokens: int
    """Most tokens of a request and its answer together."""
    threads: int


@dataclass(frozen=True, slots=True)
class LocalServerReport:
    """Address of a server that answers, or why there is none."""

    address: str = ""
    """`http://127.0.0.1:PORT`; empty if there is an error."""
    error: str = ""


SETTINGS = TypeAdapter(LocalServerSettings)
REPORT = TypeAdapter(LocalServerReport)


def main() -> None:
    """Serve until stdin ends."""
    settings = SETTINGS.validate_json(sys.stdin.buffer.readline())
    # What the library prints must not be taken for the report.
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        address, server = _serve(settings)
    except Exception as error:  # noqa: BLE001  whatever it is, the kernel has to be told
        _answer(answers, LocalServerReport(error=str(error) or type(error).__name__))
        sys.exit(1)
    _answer(answers, LocalServerReport(address))
    sys.stdin.buffer.read()
    # The server's threads may be in the middle of an answer that nobody waits for any more.
    os._exit(0 if server is not None else 1)


def _serve(settings: LocalServerSettings) -> tuple[str, object]:
    import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.n_ctx = settings.context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = settings.threads
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings.key]
    server = xllamacpp.Server(params)
    return str(server.listening_address), server


def _answer(file: int, report: LocalServerReport) -> None:
    os.write(file, REPORT.dump_json(report) + b"\n")
    os.close(file)


if __name__ == "__main__":
    main()
