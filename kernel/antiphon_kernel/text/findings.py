"""Findings of linters and type checkers, read from what these print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Final, NamedTuple

_LINE: Final = re.compile(
    r"(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s*"
    r"(?:(?P<severity>error|warning|note|info)\b:?\s*)?(?P<message>.+)"
)
_CODE: Final = re.compile(r"\s*\[(?P<code>[\w-]+)\]$")
MOST_FINDINGS: Final = 100
"""Findings of one output."""
_MESSAGE: Final = 300
"""Code points of a message."""


class Severity(StrEnum):
    """Weight of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class CheckFinding(NamedTuple):
    """A place in a file, and what is wrong there."""

    path: str
    """As it was printed."""
    line: int
    """Counted from 0."""
    severity: Severity
    message: str
    code: str | None = None
    """Name of the rule."""
    column: int | None = None
    """Code points before the place in its line."""


def finding_text(row: Mapping[str, Any], first: int = 0) -> str:
    """Return a stored finding as one line; `first` is the number of the first line of a file."""
    code = f" [{row['code']}]" if row.get("code") else ""
    return f"{int(row['line']) + first}: {row['severity']}: {row['message']}{code}"


def parse_findings(output: str) -> list[CheckFinding]:
    """Return the findings in an output, the first ones if there are very many.

    It is JSON as ruff and pyright print it, SARIF, or lines such as `PATH:LINE: error: MESSAGE`.
    What is not understood is left out.
    """
    try:
        found = _of_json(json.loads(output))
    except (ValueError, RecursionError):
        found = _of_lines(output.splitlines())
    return list(islice(found, MOST_FINDINGS))


def _of_lines(lines: Iterable[str]) -> Iterator[CheckFinding]:
    for line in lines:
        found = _LINE.fullmatch(line.strip())
        if found is not None:
            code = _CODE.search(found["message"])
            message = found["message"] if code is None else found["message"][: code.start()]
            name = code["code"] if code is not None else None
            yield make_finding(
                *(found["path"], found["line"], found["column"]),
                *(found["severity"] or Severity.ERROR, message, name),
            )


def _of_json(said: Any) -> Iterator[CheckFinding]:
    match said:
        case {"generalDiagnostics": [*rows]} | [*rows]:
            yield from chain.from_iterable(map(_of_row, rows))
        case {"runs": [*runs]}:
            for run in runs:
                if isinstance(run, dict):
                    yield from chain.from_iterable(map(_of_row, run.get("results", ())))


def _of_row(row: Any) -> Iterator[CheckFinding]:
    """Yield the finding of ruff, of pyright, or in SARIF."""
    match row:
        case {"filename": path, "location": {"row": line, **at}, "message": message}:
            code = row.get("code")
            severity = Severity.ERROR if code is None else Severity.WARNING
            yield make_finding(path, line, at.get("column"), severity, message, code)
        case {"file": path, "range": {"start": {"line": int(line), "character": int(column)}}}:
            yield make_finding(
                *(path, line + 1, column + 1, row.get("severity")),
                *(row.get("message"), row.get("rule")),
            )
        case {
            "message": {"text": message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": str(path)},
                        "region": {"startLine": line, **region},
                    }
                },
                *_,
            ],
        }:
            yield make_finding(
                *(path.removeprefix("file://"), line, region.get("startColumn")),
                *(row.get("level", Severity.WARNING), message, row.get("ruleId")),
            )


def make_finding(
    path: object, line: object, column: object, severity: object, message: object, code: object
) -> CheckFinding:
    """Return a finding as it is kept; `line` and `column` count from 1."""
    known = {"error": Severity.ERROR, "warning": Severity.WARNING}
    return CheckFinding(
        str(path),
        max(0, int(str(line)) - 1),
        known.get(str(severity), Severity.NOTE),
        " ".join(str(message).split())[:_MESSAGE],
        str(code) if code is not None else None,
        max(0, int(str(column)) - 1) if column is not None else None,
    )
