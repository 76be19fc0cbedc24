"""`antiphon drift`: what is asked, and what is printed."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from click.testing import CliRunner

from antiphon.cli import drift
from antiphon.cli.commands import antiphon
from antiphon.cli.kernel_option import KernelTarget

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

    def ask(kernel: KernelTarget, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        # What is sent is JSON.
        asked.append((tool, json.loads(json.dumps(params))))
        assert kernel.as_name == "bo"
        return {}

    monkeypatch.setattr(drift, "call_kernel", ask)
    arguments = ["drift", *line.split(), "--json", "--as", "bo"]
    ran = CliRunner().invoke(antiphon, arguments, catch_exceptions=False)
    assert (ran.exit_code, ran.output) == (0, "{}\n")
    tool, params = ASKED[line]
    assert asked == [(f"drift.{tool}", params)]


@pytest.mark.parametrize("line", ["merge x --resolve ours", "merge x --resolve a=ours", "push"])
def test_wrong_options_are_told(line: str) -> None:
    ran = CliRunner().invoke(antiphon, ["drift", *line.split()])
    assert ran.exit_code == 2 and "says more" in ran.output


def test_results_are_printed_to_be_read() -> None:
    conflict = {"number": 0, "base": "a", "ours": "b\nc"}
    change = {"name": "default.amy.1", "before": "b\n", "after": "b\nd\n"}
    preview = {"changes": [{**change, "conflicts": [conflict]}], "offers": [], "plan": "1f"}
    assert list(drift.drift_rows(preview)) == [
        *("changes:", "  name: default.amy.1", "  conflicts:", "    number: 0", "    base: a"),
        *("    ours:", "      b", "      c", "  diff:", "    --- a/default.amy.1"),
        *("    +++ b/default.amy.1", "    @@ -1,1 +1,2 @@", "     b", "    +d", "plan: 1f"),
    ]
