"""`antiphon drift`: what is asked, and what is printed."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from click.testing import CliRunner

from antiphon.cli import drift
from antiphon.cli.commands import antiphon

ASKED: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "push notes": ("push", {"to": "notes"}),
    "push notes --block a.b.1 --block a.b.2 --no-wake --context x": (
        "push",
        {"to": "notes", "blocks": ["a.b.1", "a.b.2"], "wake": False, "context": "x"},
    ),
    "pull notes --wake": ("pull", {"source": "notes", "wake": True}),
    "preview tidy --target notes": ("preview", {"source": "tidy", "target": "notes"}),
    "merge tidy --resolve 0=ours --resolve 2=a=b --prefer both --conclude --plan 1f": (
        "merge",
        {
            "source": "tidy",
            "resolve": {"0": {"side": "ours"}, "2": {"text": "a=b"}},
            "prefer": "both",
            "conclude": True,
            "plan": "1f",
        },
    ),
    "merge tidy --no-blocks": ("merge", {"source": "tidy", "blocks": []}),
    "merge tidy --summary --model m": (
        "merge",
        {"source": "tidy", "summary": True, "model": "m"},
    ),
    "distill tidy --model m": ("distill", {"source": "tidy", "model": "m"}),
    "commit a.b.1 a.b.2 --path n.md#L2 --message x --difference 1f": (
        "commit",
        {"blocks": ["a.b.1", "a.b.2"], "path": "n.md#L2", "message": "x", "difference": "1f"},
    ),
    "list": ("list", {}),
    "cancel 01": ("cancel", {"drift_id": "01"}),
}


@pytest.mark.parametrize("line", ASKED)
def test_options_are_the_parameters_of_the_tools(
    monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def ask(kernel: object, tool: str, params: dict[str, Any], **how: Any) -> dict[str, Any]:
        # What is sent is JSON.
        asked.append((tool, json.loads(json.dumps(params))))
        assert how == {"as_json": True, "as_name": "bo"}
        return {}

    monkeypatch.setattr(drift, "call_kernel", ask)
    arguments = ["drift", *line.split(), "--output-format", "json", "--as", "bo"]
    ran = CliRunner().invoke(antiphon, arguments, catch_exceptions=False)
    assert (ran.exit_code, ran.output) == (0, "{}\n")
    tool, params = ASKED[line]
    assert asked == [(f"drift.{tool}", params)]


@pytest.mark.parametrize("line", ["merge x --resolve ours", "merge x --resolve a=ours", "push"])
def test_wrong_options_are_told(line: str) -> None:
    ran = CliRunner().invoke(antiphon, ["drift", *line.split()])
    assert ran.exit_code == 2 and "says more" in ran.output


DELIVERED: Final = {
    "drift_id": "01",
    "kind": "push",
    "state": "delivered",
    "source_label": "tidy",
    "target_label": "default",
    "name": "default.amy.3",
}


def test_results_are_printed_to_be_read() -> None:
    assert list(drift.drift_rows(DELIVERED)) == [
        "01  push tidy → default: delivered  default.amy.3"
    ]
    refused = {**DELIVERED, "state": "refused", "outcome": "It is archived."}
    del refused["name"]
    assert list(drift.drift_rows({"drifts": [DELIVERED, refused]}))[1] == (
        "01  push tidy → default: refused  It is archived."
    )
    conflict = {"number": 0, "base": "a", "ours": "b\nc", "theirs": "", "start": 0, "end": 1}
    change = {"name": "default.amy.1", "before": "b\n", "after": "b\nd\n"}
    offer = {"source_block_name": "tidy.amy.9", "username": "amy", "tokens": 4, "text": "New."}
    preview = {"changes": [{**change, "conflicts": [conflict]}], "offers": [offer], "plan": "1f"}
    assert list(drift.drift_rows(preview)) == [
        *("--- a/default.amy.1", "+++ b/default.amy.1", "@@ -1,1 +1,2 @@", " b", "+d"),
        *("conflict 0 in default.amy.1:", "  base: a", "  ours: b", "  ours: c", "  theirs: "),
        *("new: tidy.amy.9  amy  4 tokens", "  New.", "plan: 1f"),
    ]


def test_commit_that_git_refused_says_so() -> None:
    files = [{"path": "a", "diff": "--- a/a\n+++ b/a\n"}]
    done = {"difference": "1f", "files": files, "outcome": "git says: no", "drift": DELIVERED}
    assert list(drift.drift_rows(done)) == [
        "01  push tidy → default: delivered  default.amy.3",
        *("--- a/a", "+++ b/a", "difference: 1f", "outcome: git says: no"),
    ]
