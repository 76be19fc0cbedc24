"""Findings in the outputs of linters and type checkers."""

from __future__ import annotations

import json

import pytest

from antiphon_kernel.text.findings import CheckFinding, Severity, parse_findings

RUFF = [
    {
        "code": "F401",
        "filename": "/p/a.py",
        "location": {"row": 1, "column": 8},
        "end_location": {"row": 1, "column": 10},
        "message": "`os` imported but unused",
    },
    {"code": None, "filename": "/p/a.py", "location": {"row": 3, "column": 1}, "message": "Bad"},
]
PYRIGHT = {
    "generalDiagnostics": [
        {
            "file": "/p/a.py",
            "severity": "error",
            "message": 'Type "int"\n  is not "str"',
            "range": {"start": {"line": 4, "character": 7}, "end": {"line": 4, "character": 9}},
            "rule": "reportArgumentType",
        }
    ]
}
SARIF = {
    "runs": [
        {
            "results": [
                {
                    "ruleId": "R1",
                    "level": "note",
                    "message": {"text": "why"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "file:///p/a.py"},
                                "region": {"startLine": 2, "startColumn": 3},
                            }
                        }
                    ],
                },
                {"message": {"text": "nowhere"}, "locations": []},
            ]
        }
    ]
}
MYPY = """a.py:2: error: Name "x" is not defined  [name-defined]
a.py:2:5: note: See https://example.org
Found 1 error in 1 file (checked 1 source file)
"""
E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
PLACE = "/p/a.py"


@pytest.mark.parametrize(
    ("output", "findings"),
    [
        (
            json.dumps(RUFF),
            [
                CheckFinding(PLACE, 0, W, "`os` imported but unused", "F401", 7),
                CheckFinding(PLACE, 2, E, "Bad", None, 0),
            ],
        ),
        (
            json.dumps(PYRIGHT),
            [CheckFinding(PLACE, 4, E, 'Type "int" is not "str"', "reportArgumentType", 7)],
        ),
        (json.dumps(SARIF), [CheckFinding(PLACE, 1, N, "why", "R1", 2)]),
        (
            MYPY,
            [
                CheckFinding("a.py", 1, E, 'Name "x" is not defined', "name-defined"),
                CheckFinding("a.py", 1, N, "See https://example.org", None, 4),
            ],
        ),
        ("", []),
        ("[1, null, {}]", []),
        ('{"runs": [{"results": [{}]}]}', []),
        ("[" * 100_000, []),
        ("a.py:1: x\n" * 1_000, [CheckFinding("a.py", 0, E, "x")] * 100),
    ],
    ids=["ruff", "pyright", "sarif", "mypy", "empty", "other", "no place", "deep", "many"],
)
def test_findings_are_read_in_every_form(output: str, findings: list[CheckFinding]) -> None:
    assert parse_findings(output) == findings
