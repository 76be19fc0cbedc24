"""Server of one GGUF file, run as a process of its own: a C++ thread pool that ends with it.

    python -m antiphon_kernel.providers.local_server

Reads one line of JSON from stdin, the arguments of `serve`: so the key is in no list of processes.
Writes one to stdout, an object with the `address` of the server, or with the `error` why there is
none. Serves Chat Completions on the loopback interface until stdin ends, which it does when the
process that started it is gone, however it went.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve until stdin ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    # What the library prints must not be taken for the report.
    answers = os.dup(1)
    os.dup2(2, 1)
    report, server = {}, None
    try:
        report["address"], server = serve(**settings)
    except Exception as error:  # noqa: BLE001  whatever it is, the kernel has to be told
        report["error"] = str(error) or type(error).__name__
    os.write(answers, json.dumps(report).encode() + b"\n")
    os.close(answers)
    if server is None:
        sys.exit(1)
    sys.stdin.buffer.read()
    # The server's threads may be in the middle of an answer that nobody waits for any more.
    os._exit(0)


def serve(path: str, key: str, context_tokens: int, threads: int) -> tuple[str, object]:
    """Start a server; return its address, `http://127.0.0.1:PORT`, and what keeps it running.

    Args:
        path: of the model's file.
        key: without it no request is answered.
        context_tokens: most tokens of a request and its answer together.
        threads: how many it computes with.
    """
    import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    server = xllamacpp.Server(params)
    return str(server.listening_address), server


if __name__ == "__main__":
    main()
