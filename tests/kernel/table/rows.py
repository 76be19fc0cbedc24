"""One table of calls, good and bad, that every door must answer in the same way.

The rows are calls in order, each on what the ones before it have left. A tool that is new gets a
row here; a tool without one, or an error code that no row reaches, fails the test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from antiphon_kernel.types.errors import ErrorCode as Code

OWNER: Final = None
"""The caller when nobody is named: the owner of the kernel."""


KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0JnQ8T350LtEJ6bOmdYbmIhhdh4obW40sX1jcbRrE/"
"""A public SSH key."""


@dataclass(frozen=True, slots=True)
class Row:
    """One call. `@name` as a value stands for the id of the block that was kept as `name`."""

    tool: str
    params: Any = field(default_factory=dict)
    fails: Code | None = None
    by: str | None = OWNER
    keep: str | None = None
    """Call the block that this row makes so."""
    text: bool = False
    """`params` is the text of the parameters as a client writes it, not their value."""


def text(content: object = None, **more: Any) -> dict[str, Any]:
    given = {} if content is None else {"content": content}
    return {"role": "user", "kind": "text", **given, **more}


def edit(block: str, *operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"block_id": block, "operations": list(operations), **more}


def insert(line: Any, content: Any) -> dict[str, Any]:
    return {"op": "insert", "line": line, "content": content}


def delete(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"op": "delete", "start_line": start, "end_line": end, **more}


def replace(start: int, end: int, content: str, **more: Any) -> dict[str, Any]:
    return {"op": "replace", "start_line": start, "end_line": end, "content": content, **more}


EXPORTED: Final = (
    f'{{"type": "context", "format": 2, "context_id": "{"0" * 31}1", "label": "x", "version": 1}}\n'
    '{"type": "end", "blocks": 0}\n'
)
FAMILY: Final = "👩‍👩‍👧 e\u0301 日本語 naïve\r\n\x00\x1b[31m\u202e\ud7ff\U0010ffff"
HALF: Final = "half \ud83d"
DEEP: Final[Any] = {"a": [{"b": [1, 2.5, True, None, "x"]}]}

COMING_IN: Final = (
    Row("session.whoami"),
    Row("session.whoami", by="bo"),
    Row("session.whoami", by="vic"),
    Row("session.whoami", by="mal"),
    Row("session.name", {"display_name": "Bo Sørensen"}, by="bo"),
    Row("session.name", {"display_name": "two\nlines"}, Code.INVALID_PARAMS),
    Row("kernel.label", {"label": "Reading room"}),
    Row("kernel.info", by="vic"),
    Row("kernel.label", {"label": "mine"}, Code.PERMISSION_DENIED, by="bo"),
    Row("kernel.tools"),
    Row("kernel.role", {"principal": "vic", "role": "viewer"}),
    Row("kernel.role", {"principal": "nobody", "role": "viewer"}, Code.INVALID_PARAMS),
    Row("kernel.role", {"principal": "bo", "role": "owner"}, Code.PERMISSION_DENIED, by="bo"),
    Row("kernel.members"),
    Row("kernel.members", by="vic"),
    Row("kernel.invite", {"role": "editor", "name": "ivy", "minutes": 0, "uses": 1}),
    Row("kernel.invite", {"role": "viewer", "name": "Ivy!"}, Code.INVALID_PARAMS),
    Row("kernel.invites"),
    Row("kernel.invites", {}, Code.PERMISSION_DENIED, by="bo"),
    Row("kernel.revoke", {"principal": "system"}, Code.INVALID_PARAMS),
    Row("kernel.revoke", {"principal": "ivy"}),
    Row("kernel.revoke", {}, Code.INVALID_PARAMS),
    Row("key.add", {"key": KEY, "name": "kim"}),
    Row("key.add", {"key": KEY, "name": "lea"}, Code.INVALID_PARAMS),
    Row("key.add", {"key": "ssh-dss AAAA", "name": "lea"}, Code.INVALID_PARAMS),
    Row("key.list"),
    Row("key.ask", {"key": KEY, "name": "kim", "wait": 0}),
    Row("key.ask", {"key": KEY, "name": "kim"}, Code.PERMISSION_DENIED, by="bo"),
    Row("key.requests"),
    Row("key.revoke", {"principal": "system"}, Code.INVALID_PARAMS),
    Row("key.revoke", {"principal": "kim"}),
    Row("key.revoke", {}, Code.INVALID_PARAMS),
    Row("ssh.check", {"fingerprint": "SHA256:unknown"}),
    Row("ssh.ended"),
    Row("ssh.close", {"host": "0", "session": "0"}),
    Row("kernel.joins"),
    Row("kernel.kick", {"principal": "mal", "minutes": 0}),
    Row("kernel.kick", {"principal": "mal"}, Code.PERMISSION_DENIED, by="bo"),
)

CONTEXTS: Final = (
    Row("context.create", {"label": "notes"}),
    Row("context.create", {"label": "notes"}, Code.INVALID_PARAMS),
    Row("context.create", {"label": "Große Notizen"}, Code.INVALID_PARAMS),
    Row("context.create", {"label": ""}, Code.INVALID_PARAMS),
    Row("context.create", {"label": "x"}, Code.PERMISSION_DENIED, by="vic"),
    Row("context.list"),
    Row("block.list", {"context": "notes"}),
    Row("block.list", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("block.list", {"context": ""}),
    Row("block.list", {"context": "0"}, Code.AMBIGUOUS_ID),
)

CREATING: Final = (
    Row("block.create", text("milk\nbread\nsoap\n"), keep="list"),
    Row("block.create", text(), keep="empty"),
    Row("block.create", text("", status="pending"), keep="blank"),
    Row("block.create", text(FAMILY, status="done"), by="bo", keep="family"),
    Row("block.create", text("answers", parent_id="@family", after="@list"), keep="answer"),
    Row(
        "block.create",
        text("x", status="done", metadata={"path": "a/b.py", "language": "python", "mine": DEEP}),
        keep="file",
    ),
    Row("block.create", text(HALF), Code.INVALID_PARAMS),
    Row("block.create", text("x", metadata={"mine": HALF}), Code.INVALID_PARAMS),
    Row("block.create", text("x", metadata={"collapsed": "yes"}), Code.INVALID_PARAMS),
    Row("block.create", text("x", metadata={"tool_kind": "magic"}), Code.INVALID_PARAMS),
    Row("block.create", {"role": "model", "kind": "text"}, Code.INVALID_PARAMS),
    Row("block.create", text("x", after="@list", context="notes"), Code.BLOCK_NOT_FOUND),
    Row("block.create", text("x", parent_id="default.nobody.1"), Code.BLOCK_NOT_FOUND),
    Row("block.create", text("x", parent_id="@list", context="notes"), Code.INVALID_PARAMS),
    Row("block.create", text("x"), Code.PERMISSION_DENIED, by="vic"),
    Row("block.create", text("n", context="notes"), keep="note"),
)

READING: Final = (
    Row("block.read", {"block_id": "@list"}),
    Row("block.read", {"block_id": "@family"}, by="vic"),
    Row("block.read", {"block_id": "@empty"}),
    Row("block.read", {"block_id": "@list", "range": {"start": 1, "end": 2}, "line_numbers": True}),
    Row("block.read", {"block_id": "@list", "range": {"start": 3, "end": 3}}),
    Row(
        "block.read", {"block_id": "@list", "range": {"start": 1, "end": 9}}, Code.LINE_OUT_OF_RANGE
    ),
    Row("block.read", {"block_id": "@list", "range": {"start": 2, "end": 1}}, Code.INVALID_PARAMS),
    Row("block.read", {}, Code.INVALID_PARAMS),
    Row("block.read", {"block_id": ""}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": "default.bo"}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": "default.bo.01"}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": f"default.bo.{'9' * 400}"}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": "default.system.99"}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": "attic.bo.1"}, Code.CONTEXT_NOT_FOUND),
    Row("block.read", {"block_id": "0.bo.1"}, Code.AMBIGUOUS_ID),
    Row("block.read", {"block_id": "default.0.1"}, Code.AMBIGUOUS_ID),
    Row("block.read", {"block_id": "@list", "version": 1}),
    Row("block.read", {"block_id": "@list", "version": 77}, Code.INVALID_PARAMS),
    Row("block.read", {"block_id": "@list", "version": 0}, Code.INVALID_PARAMS),
    Row("block.list"),
    Row("block.list", {"limit": 2}),
    Row("block.list", {"limit": 2, "after_block": "@answer"}),
    Row("block.list", {"role": "user", "kind": "text", "status": "done"}),
    Row("block.list", {"path_prefix": "a/"}),
    Row("block.list", {"parent_id": "@family"}),
    Row("block.list", {"limit": 10**400}, Code.INVALID_PARAMS),
    Row("block.list", {"depth": 1}, Code.INVALID_PARAMS),
    Row("block.list", {"parent_id": "@list", "context": "notes"}, Code.BLOCK_NOT_FOUND),
    Row("block.list", {"after_block": "@list", "context": "notes"}, Code.BLOCK_NOT_FOUND),
    Row("block.search", {"block_id": "@list", "query": "read"}),
    Row("block.search", {"block_id": "@list", "query": "^b.*d$", "regex": True}),
    Row("block.search", {"block_id": "@list", "query": "nothing like it"}),
    Row("block.search", {"block_id": "@list", "query": "(", "regex": True}, Code.INVALID_REGEX),
    Row("kernel.search", {"query": "milk"}),
    Row("kernel.search", {"query": "日本", "max_blocks": 1}, by="vic"),
    Row("kernel.search", {"query": "[", "regex": True}, Code.INVALID_REGEX),
    Row("block.create", text("a" * 40 + "!", status="done"), keep="slow"),
    Row(
        "block.search", {"block_id": "@slow", "query": "(a|a)*$", "regex": True}, Code.REGEX_TIMEOUT
    ),
)

WRITING: Final = (
    Row("block.append", {"block_id": "@empty", "text": "one "}),
    Row("block.append", {"block_id": "@empty", "text": "two ", "stream": True}),
    Row("block.append", {"block_id": "@empty", "text": "three\n"}),
    Row("block.append", {"block_id": "@empty", "text": ""}),
    Row("block.append", {"block_id": "@empty", "text": HALF}, Code.INVALID_PARAMS),
    Row("block.append", {"block_id": "@family", "text": "x"}, Code.INVALID_TRANSITION),
    Row("block.append", {"block_id": "@empty", "text": "y" * 8_000_001}, Code.TOO_LARGE),
    Row("block.read", {"block_id": "@empty"}),
    Row("block.edit", edit("@list", replace(1, 2, "rye", expected_text="bread"), insert(3, "tea"))),
    Row("block.edit", edit("@list", delete(0, 1, expected_text="beer")), Code.CONTENT_MISMATCH),
    Row("block.edit", edit("@list", delete(3, 9)), Code.LINE_OUT_OF_RANGE),
    Row("block.edit", edit("@list", insert(-1, "x")), Code.LINE_OUT_OF_RANGE),
    Row("block.edit", edit("@list", delete(1, 1)), Code.INVALID_PARAMS),
    Row("block.edit", edit("@list", delete(0, 2), insert(1, "x")), Code.OVERLAPPING_OPERATIONS),
    Row("block.edit", edit("@list", insert(0, HALF)), Code.INVALID_PARAMS),
    Row("block.edit", edit("@list", insert(10**30, "x")), Code.LINE_OUT_OF_RANGE),
    Row("block.edit", edit("@list", {"op": "swap"}), Code.INVALID_PARAMS),
    Row("block.edit", edit("@list", *[insert(0, "x")] * 1001), Code.TOO_LARGE),
    Row("block.edit", edit("@list")),
    Row("block.edit", edit("@list", replace(1, 2, "bun"), base_version=1), Code.STALE_VERSION),
    Row("block.edit", edit("@list", replace(2, 3, "suds"), base_version=1)),
    Row("block.edit", edit("@list", delete(0, 1), base_version=99), Code.INVALID_PARAMS),
    Row("block.edit", edit("@list", insert(0, "x")), Code.PERMISSION_DENIED, by="vic"),
    Row("block.splice", {"block_id": "@family", "offset": 2, "delete_count": 1, "insert": "ü"}),
    Row("block.splice", {"block_id": "@family", "offset": 10**6}, Code.INVALID_PARAMS),
    Row("block.splice", {"block_id": "@family", "offset": -1}, Code.INVALID_PARAMS),
    Row("block.splice", {"block_id": "@family", "offset": 10**400}, Code.INVALID_PARAMS),
    Row("block.splice", {"block_id": "@family", "offset": 0}),
    Row("block.read", {"block_id": "@family"}),
    Row("block.apply_patch", {"block_id": "@list", "patch": "@@ -2,1 +2,1 @@\n-rye\n+bun\n"}),
    Row(
        "block.apply_patch",
        {"block_id": "@list", "patch": "@@ -2,1 +2,1 @@\n-rye\n+bun\n", "dry_run": True},
    ),
    Row(
        "block.apply_patch",
        {"block_id": "@list", "patch": "@@ -2,1 +2,1 @@\n-rye\n+bun\n"},
        Code.PATCH_FAILED,
    ),
    Row("block.apply_patch", {"block_id": "@list", "patch": "what?"}, Code.PATCH_FAILED),
    Row("block.read", {"block_id": "@list"}),
)

TURNING: Final = (
    Row("block.undo", {"block_id": "@list"}),
    Row("block.redo", {"block_id": "@list"}),
    Row("block.redo", {"block_id": "@list"}, Code.NOTHING_TO_REDO),
    Row("block.undo", {"principal": "bo"}, by="bo"),
    Row("block.undo", {"context": "notes"}, Code.NOTHING_TO_UNDO, by="bo"),
    Row("block.undo", {"principal": "nobody"}, Code.INVALID_PARAMS),
    Row("block.undo", {}, Code.PERMISSION_DENIED, by="vic"),
    Row("block.blame", {"block_id": "@list"}),
    Row("block.blame", {"block_id": "@family"}, by="vic"),
    Row("block.blame", {"block_id": "@blank"}),
    Row("block.history", {"block_id": "@list"}),
    Row("block.history", {"block_id": "@list", "limit": 1, "after_version": 1}),
    Row("block.timeline", {"block_id": "@list"}),
    Row("block.timeline", {"block_id": "@list"}, by="vic"),
    Row("context.history"),
    Row("context.history", {"context": "notes", "limit": 1, "after_version": 1}, by="vic"),
    Row("context.history", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("block.restore", {"block_id": "@list", "version": 1}),
    Row("block.restore", {"block_id": "@list", "version": 10**9}, Code.INVALID_PARAMS),
    Row("block.read", {"block_id": "@list"}),
)

ARRANGING: Final = (
    Row("block.move", {"block_id": "@file", "before": "@list"}),
    Row("block.move", {"block_id": "@file", "after": "@list"}, by="bo"),
    Row("block.move", {"block_id": "@file"}, Code.INVALID_PARAMS),
    Row(
        "block.move",
        {"block_id": "@file", "after": "@list", "before": "@list"},
        Code.INVALID_PARAMS,
    ),
    Row("block.move", {"block_id": "@file", "after": "@file"}, Code.INVALID_PARAMS),
    Row("block.move", {"block_id": "@file", "after": "@note"}, Code.BLOCK_NOT_FOUND),
    Row("block.collapse", {"block_id": "@file", "collapsed": True}),
    Row("block.exclude", {"block_id": "@file", "excluded": True}, by="bo"),
    Row("block.status", {"block_id": "@blank", "status": "done"}, Code.INVALID_TRANSITION),
    Row("block.status", {"block_id": "@list", "status": "done"}, Code.PERMISSION_DENIED, by="bo"),
    Row("block.status", {"block_id": "@list", "status": "done"}),
    Row("block.status", {"block_id": "@list", "status": "done"}),
    Row("block.status", {"block_id": "@list", "status": "running"}, Code.INVALID_TRANSITION),
    Row("block.status", {"block_id": "@list", "status": "asleep"}, Code.INVALID_PARAMS),
    Row("block.list"),
)

TASK: Final = {
    "type": "map",
    "fields": [
        {"name": "title", "field_type": "text", "required": True},
        {"name": "votes", "field_type": "counter"},
        {"name": "tags", "field_type": "list", "max_items": 2},
        {"name": "origin", "field_type": "text", "read_only": True},
    ],
}
PAPER: Final = {
    "type": "composite",
    "sections": [
        {"name": "summary", "schema": {"type": "text"}},
        {"name": "sources", "schema": {"type": "list"}, "read_only": True},
        {"name": "events", "schema": {"type": "log", "display_limit": 2}},
    ],
}


def at(block: str, **more: Any) -> dict[str, Any]:
    return {"block_id": block, **more}


STRUCTURES: Final = (
    Row("block.create", text(schema=TASK, content={"title": "日本", "votes": 2}), keep="task"),
    Row("block.create", text(schema=PAPER), keep="paper"),
    Row("block.create", text(schema={"type": "poem"}), Code.INVALID_PARAMS),
    Row("block.create", text(schema=TASK, content={"title": 5}), Code.SCHEMA_VIOLATION),
    Row("block.get", at("@task")),
    Row("block.get", at("@task", field="votes"), by="vic"),
    Row("block.get", at("@paper", section="attic"), Code.SCHEMA_VIOLATION),
    Row("block.set_field", at("@task", field="title", value="日本 👩‍👧")),
    Row("block.set_field", at("@task", field="title", value=HALF), Code.INVALID_PARAMS),
    Row("block.set_field", at("@task", field="votes", value="two"), Code.SCHEMA_VIOLATION),
    Row("block.set_field", at("@task", field="colour", value=1), Code.SCHEMA_VIOLATION),
    Row("block.set_field", at("@task", field="origin", value="x"), Code.READ_ONLY_FIELD),
    Row("block.set_field", at("@task", field="title", value="x"), Code.PERMISSION_DENIED, by="vic"),
    Row("block.increment", at("@task", field="votes"), by="bo"),
    Row("block.increment", at("@task", field="votes", by=-3)),
    Row("block.increment", at("@task", field="title"), Code.SCHEMA_VIOLATION),
    Row("block.push_item", at("@task", field="tags", value="food")),
    Row("block.insert_item", at("@task", field="tags", value=DEEP, index=0)),
    Row("block.push_item", at("@task", field="tags", value="third"), Code.SCHEMA_VIOLATION),
    Row("block.delete_item", at("@task", field="tags", index=0)),
    Row("block.delete_item", at("@task", field="tags", index=10**9), Code.SCHEMA_VIOLATION),
    Row("block.push_item", at("@paper", section="sources", value="x"), Code.READ_ONLY_SECTION),
    Row("block.append_log", at("@paper", section="events", entry=DEEP)),
    Row("block.append_log", at("@paper", section="summary", entry=1), Code.SCHEMA_VIOLATION),
    Row("block.splice", at("@paper", section="summary", offset=0, insert="Keys.\n")),
    Row("block.splice", at("@paper", section="sources", offset=0), Code.READ_ONLY_SECTION),
    Row("block.render", at("@paper")),
    Row("block.render", at("@task"), by="vic"),
    Row("block.export", at("@task")),
    Row("block.import", at("@task", content={"title": "Paris", "tags": []})),
    Row("block.import", at("@task", content={"title": None}), Code.SCHEMA_VIOLATION),
    Row("block.import", at("@task", content={"origin": "x"}), Code.READ_ONLY_FIELD),
    Row("block.blame", at("@paper", section="summary")),
    Row("block.sync", {"versions": {"@list": 1, "@family": 1}, "limit": 3}),
    Row("block.sync", {"versions": [["@note", 1]]}),
    Row("block.sync", {"versions": {"@list": 1, "@note": 1}}, Code.BLOCK_NOT_FOUND),
    Row("block.subscribe", {"block_ids": ["default.bo.999"]}, Code.BLOCK_NOT_FOUND),
    Row("block.subscribe", {"block_ids": ["@list"], "context": "notes"}, Code.BLOCK_NOT_FOUND),
    Row("block.subscribe", {"from_versions": {"default.bo.999": 1}}, Code.BLOCK_NOT_FOUND),
    Row("block.subscribe", {"from_versions": [["@list"]]}, Code.INVALID_PARAMS),
    Row("block.unsubscribe", {"subscription": "none"}, Code.INVALID_PARAMS),
    Row("block.undo", at("@task")),
)

ATTACHING: Final = (
    Row("block.create", text("Look", status="done"), by="bo", keep="look"),
    Row("block.attach", at("@look", files=[{"name": "a.md", "data": "YQ=="}]), by="bo"),
    Row("block.attach", at("@look", files=[{"name": "a.md", "data": "YQ=="}]), by="bo"),
    Row("block.attach", at("@look", files=[{"name": "b", "data": "AA=="}]), Code.INVALID_PARAMS),
    Row("block.attach", at("@look", files=[{"path": "../b"}]), Code.INVALID_PARAMS),
    Row("block.attach", at("@look", files=[{"path": "b"}]), Code.PERMISSION_DENIED, by="bo"),
    Row("block.attach", at("@look", files=[]), Code.INVALID_PARAMS, by="bo"),
    Row("block.attach", at("@look", files=[{"name": HALF}]), Code.INVALID_PARAMS, by="bo"),
    Row("block.attach", at("@look", files=[{"name": "a", "data": "YQ=="}] * 21), Code.TOO_LARGE),
    Row(
        "block.attach",
        at("default.bo.999", files=[{"name": "a", "data": "YQ=="}]),
        Code.BLOCK_NOT_FOUND,
    ),
)

CITING: Final = (
    Row("source.add", {"sources": [{"url": "https://example.org/a", "title": FAMILY}]}, by="bo"),
    Row("source.add", {"sources": [{"url": "https://EXAMPLE.org/a#b"}, {"path": "docs/日本.md"}]}),
    Row("source.add", {"sources": [{"url": "ftp://example.org"}]}, Code.INVALID_PARAMS),
    Row("source.add", {"sources": [{"path": "../x"}]}, Code.INVALID_PARAMS),
    Row("source.add", {"sources": [{"url": HALF}]}, Code.INVALID_PARAMS),
    Row("source.add", {"sources": [{"path": "a", "text": "x" * 200_001}]}, Code.TOO_LARGE),
    Row("source.add", {"sources": [{"path": "a"}]}, Code.PERMISSION_DENIED, by="vic"),
    Row("source.list", by="vic"),
    Row("source.list", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("source.read", {"path": "so:sources_pool[1-2]"}, by="vic"),
    Row("source.read", {"path": "so:sources_pool[3]"}, Code.BLOCK_NOT_FOUND),
    Row("source.read", {"path": "so:sources_pool[3-1]"}, Code.INVALID_PARAMS),
)

COPIES: Final = (
    Row("context.fork", {"context": "default", "label": "twin"}),
    Row("context.fork", {"context": "default", "label": "early", "at": 2}),
    Row("context.fork", {"context": "default", "at": 10**6}, Code.INVALID_PARAMS),
    Row("context.fork", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("context.fork", {"context": "default"}, Code.PERMISSION_DENIED, by="vic"),
    Row("block.list", {"context": "early"}),
    Row("context.rename", {"context": "early", "label": "older"}),
    Row("context.rename", {"context": "older", "label": "twin"}, Code.INVALID_PARAMS),
    Row("context.archive", {"context": "older"}),
    Row("context.archive", {"context": "default"}, Code.INVALID_PARAMS),
    Row("context.list"),
    Row("context.list", {"archived": True}),
    Row("context.page"),
    Row("context.page", {"context": "notes"}, by="vic"),
    Row("context.page", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("context.page", {"around": "x.1"}, Code.BLOCK_NOT_FOUND),
    Row("context.export", {"context": "notes"}),
    Row("context.export", {"context": "notes", "format": "markdown"}, by="vic"),
    Row("context.export", {"format": "replay", "redact": ["("]}, Code.INVALID_REGEX),
    Row("context.export", {"format": "markdown", "redact": ["x"]}, Code.INVALID_PARAMS),
    Row("context.import", {"label": "again", "text": EXPORTED}),
    Row("context.import", {"label": "again", "text": EXPORTED}, Code.INVALID_PARAMS),
    Row("context.import", {"text": "# Notes"}, Code.INVALID_PARAMS),
)

LAYOUTS: Final = (
    Row("context.layout", {"context": "default"}),
    Row("context.layout", {"since": 1, "last": 3, "exact": True}, by="vic"),
    Row("context.layout", {"exclude_contributions": ["react.notes"]}),
    Row("context.layout", {"include_only_contributions": ["thoughts"]}, Code.INVALID_PARAMS),
    Row("context.layout", {"since": 10**6}, Code.INVALID_PARAMS),
    Row("context.layout", {"announce_since": 10**6}, Code.INVALID_PARAMS),
    Row("context.layout", {"model": "nobody"}, Code.INVALID_PARAMS),
    Row("context.layout", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("context.request", {"max_tokens": 100, "window": {"input": 100, "separate": True}}),
    Row("context.request", {"model": "vic"}, Code.INVALID_PARAMS),
    Row("context.usage", by="vic"),
    Row("context.usage", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("block.read", {"block_id": "ar:turn_1_abcdef.user.prompt"}, Code.BLOCK_NOT_FOUND),
    Row("block.read", {"block_id": "attic/ar:turn_1_abcdef.user.prompt"}, Code.CONTEXT_NOT_FOUND),
    Row("block.read", {"block_id": "so:sources_pool[1-2-3]"}, Code.BLOCK_NOT_FOUND),
)

_SAID = {"context": "long", "role": "user", "kind": "text", "status": "done"}

COMPACTIONS: Final = (
    Row("context.create", {"label": "long"}),
    Row("block.create", {**_SAID, "content": "word " * 600}),
    Row("block.create", {**_SAID, "content": "And now?"}, keep="now"),
    Row("context.expand", {"context": "long"}, Code.INVALID_PARAMS),
    Row("context.compact", {"context": "long", "keep_turns": 1}, Code.PERMISSION_DENIED, by="vic"),
    Row("context.compact", {"context": "long", "keep_turns": 1}),
    Row("context.compact", {"context": "long", "keep_turns": 1}),
    Row("context.compact", {"context": "long", "budget": 10}, Code.CONTEXT_TOO_LONG),
    Row("context.compact", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("context.expand", {"context": "long"}, Code.PERMISSION_DENIED, by="vic"),
    Row("context.expand", {"context": "long", "summary": "x"}, Code.BLOCK_NOT_FOUND),
    Row("context.expand", {"context": "long", "summary": "@now"}, Code.INVALID_PARAMS),
    Row("context.expand", {"context": "long"}),
    Row("context.expand", {"context": "long"}, Code.INVALID_PARAMS),
    Row("context.expand", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
)

_SUM = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
_CHAT = '{"messages": [{"role": "user", "content": "Hello"}]}'

TALKING: Final = (
    Row("context.create", {"label": "talk"}),
    Row("message.append", {"context": "talk", "messages": _SUM}, keep="sum"),
    Row("message.append", {"context": "talk", "messages": _SUM}),
    Row(
        "message.append",
        {"parent": "@sum", "messages": [{"role": "system", "content": "x"}]},
        Code.INVALID_PARAMS,
    ),
    Row("message.append", {"parent": "@sum", "messages": [7]}, Code.INVALID_PARAMS),
    Row("message.append", {"parent": "x.y.1", "messages": _SUM}, Code.CONTEXT_NOT_FOUND),
    Row("message.append", {"context": "talk", "messages": _SUM}, Code.PERMISSION_DENIED, by="vic"),
    Row("message.append", {"parent": "@sum", "messages": [text("One. Two.")]}, Code.INVALID_PARAMS),
    Row(
        "message.append",
        {"parent": "@sum", "messages": [{"role": "user", "content": "One. Two."}]},
        keep="two",
    ),
    Row("message.split", {"message": "@two", "at": 99}, Code.INVALID_PARAMS),
    Row("message.split", {"message": "@two", "at": 5}),
    Row("message.edit", {"message": "@sum", "content": ""}, Code.INVALID_PARAMS),
    Row("message.edit", {"message": "@sum", "content": "Four."}, keep="four"),
    Row("message.siblings", {"message": "@four"}),
    Row("message.siblings", {"message": "x.y.1"}, Code.CONTEXT_NOT_FOUND),
    Row("message.children", {"context": "talk"}),
    Row("message.path", {"message": "@two"}, by="vic"),
    Row("message.path", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("message.search", {"text": "four", "context": "talk"}),
    Row("drift.distill", {"source": "talk", "context": "talk"}, by="bo"),
    Row("drift.distill", {"source": "talk", "blocks": ["@two"]}, Code.PERMISSION_DENIED, by="vic"),
    Row("drift.distill", {"source": "talk", "blocks": ["x.y.1"]}, Code.CONTEXT_NOT_FOUND),
    Row("drift.distill", {"source": "talk", "model": "nobody"}, Code.INVALID_PARAMS),
    Row("message.delete", {"messages": ["@two", "x.y.1"], "descendants": "reparent"}),
    Row("message.import", {"text": _CHAT, "label": "chat"}),
    Row("message.import", {"text": "{}", "label": "chat2"}, Code.INVALID_PARAMS),
    Row("message.import", {"text": _CHAT, "label": "more"}, Code.PERMISSION_DENIED, by="bo"),
)

COMMANDS: Final = (
    Row("shell.run", {"command": "printf 'a b'; exit 3", "wait": True}),
    Row("shell.run", {"command": "ls"}, Code.PERMISSION_DENIED, by="bo"),
    Row("shell.run", {"command": " "}, Code.INVALID_PARAMS),
    Row("model.list"),
    Row("model.list", by="vic"),
    Row("mcp.list"),
    Row("mcp.list", {"start": True}, by="vic"),
    Row("elicitation.answer", {"block_id": "@list", "action": "no"}, Code.INVALID_PARAMS),
    Row("elicitation.answer", {"block_id": "@list", "action": "decline"}, Code.INVALID_TRANSITION),
    Row("agent.list"),
    Row("agent.list", {"context": "notes"}, by="vic"),
    Row("agent.list", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("agent.set", {"agent": "nobody", "option": "mode", "value": "plan"}, Code.INVALID_PARAMS),
    Row(
        "agent.set",
        {"agent": "nobody", "option": "mode", "value": "plan"},
        Code.PERMISSION_DENIED,
        by="bo",
    ),
    Row(
        "agent.set",
        {"agent": "x", "option": "mode", "value": "plan", "context": "attic"},
        Code.CONTEXT_NOT_FOUND,
    ),
    Row("model.check"),
    Row("model.check", {"model": "nobody"}, Code.INVALID_PARAMS),
    Row("model.check", {}, Code.PERMISSION_DENIED, by="bo"),
    Row("turn.interrupt"),
    Row("message.branches"),
    Row("message.branches", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("turn.start", {"message": "@sum"}),
    Row("turn.start", {"message": "x"}, Code.BLOCK_NOT_FOUND),
    Row("turn.wait", {"message": "@sum"}),
    Row("turn.wait", {"message": "@sum"}, by="vic"),
    Row("turn.wait", {}, Code.INVALID_PARAMS),
    Row("turn.interrupt", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("permission.list"),
    Row("permission.list", {"context": "notes"}, by="vic"),
    Row("permission.list", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("permission.decide", {"block_id": "@list", "decision": "once"}, Code.INVALID_TRANSITION),
    Row("permission.decide", {"block_id": "x", "decision": "no"}, Code.BLOCK_NOT_FOUND),
    Row(
        "permission.decide",
        {"block_id": "@list", "decision": "once", "reason": "why"},
        Code.INVALID_PARAMS,
    ),
    Row(
        "permission.decide",
        {"block_id": "@list", "decision": "once"},
        Code.PERMISSION_DENIED,
        by="vic",
    ),
    Row("permission.revoke", {"context": "default"}),
    Row("permission.revoke", {"rule": 1}, Code.INVALID_PARAMS),
    Row("permission.revoke", {}, Code.INVALID_PARAMS),
    Row("permission.revoke", {"rule": 1}, Code.PERMISSION_DENIED, by="vic"),
    Row("block.create", text("x", metadata={"permission": "once"}), Code.INVALID_PARAMS),
    Row("block.create", text("x", metadata={"decided_by": "amy"}), Code.INVALID_PARAMS),
    Row("turn.queue", by="vic"),
    Row("turn.queue", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("turn.retry", {"message": "@sum"}),
    Row("turn.retry", {"message": "x"}, Code.BLOCK_NOT_FOUND),
    Row("context.model"),
    Row("context.model", {"model": "nobody"}, Code.INVALID_PARAMS),
    Row("context.model", {}, Code.PERMISSION_DENIED, by="vic"),
    Row("kernel.usage", by="vic"),
    Row("kernel.usage", {"context": "attic"}, Code.CONTEXT_NOT_FOUND),
    Row("kernel.usage", {"principal": "nobody"}, Code.INVALID_PARAMS),
)

_PATCH: Final = "--- a/src/t.txt\n+++ b/src/t.txt\n@@ -1,1 +1,1 @@\n-one\n+1\n"

_DECIDED: Final = {
    "blocks": ["@decided"],
    "path": "src/t.txt",
    "difference": "b2c6a3c63ee52a450628eaa86370e0033851442c1f7e559fd3015e3a3b2bb8d5",
}

FILE_TEXTS: Final = (
    Row("file.create", {"path": "src/t.txt", "content": "one\ntwo\n"}),
    Row("file.read", {"path": "src/t.txt", "start_line": 1, "line_numbers": True}, by="vic"),
    Row("file.read", {"path": "src/t.txt", "start_line": 3}, Code.LINE_OUT_OF_RANGE),
    Row("file.part", {"path": "src/t.txt", "start": 4}, by="vic"),
    Row("file.part", {"path": "src/u.txt"}, Code.PERMISSION_DENIED, by="bo"),
    Row("file.read", {"path": "src/u.txt"}, Code.PERMISSION_DENIED, by="bo"),
    Row("file.edit", {"path": "src/t.txt", "old_text": "two", "new_text": FAMILY}, by="bo"),
    Row(
        "file.edit",
        {"path": "src/t.txt", "old_text": "two", "new_text": "2"},
        Code.CONTENT_MISMATCH,
    ),
    Row(
        "file.edit",
        {"path": "src/t.txt", "old_text": "two", "new_text": "2", "base_version": 2},
        Code.STALE_VERSION,
    ),
    Row("file.edit", {"path": "src/t.txt", "new_text": ""}, Code.INVALID_PARAMS),
    Row("file.patch", {"patch": _PATCH}, by="bo"),
    Row("file.patch", {"patch": _PATCH}, Code.PATCH_FAILED),
    Row("block.create", text("decided", status="done"), keep="decided"),
    Row("drift.commit", {"blocks": ["@decided"], "path": "src/t.txt"}, by="bo"),
    Row("drift.commit", _DECIDED | {"difference": "0"}, Code.STALE_VERSION, by="bo"),
    Row("drift.commit", _DECIDED | {"message": "x"}, Code.PERMISSION_DENIED, by="bo"),
    Row("drift.commit", _DECIDED, by="bo"),
    Row("drift.commit", {"blocks": ["@decided"]}, Code.INVALID_PARAMS),
    Row("file.search", {"query": "1", "glob": "src/t*"}),
    Row("file.search", {"query": "1"}, Code.PERMISSION_DENIED, by="bo"),
)

DRIFTS: Final = (
    Row("block.create", text("for all to see", status="done"), keep="said"),
    Row("context.create", {"label": "shore"}),
    Row("drift.push", {"to": "shore", "blocks": ["@said"]}, by="bo"),
    Row("drift.push", {"to": "default", "blocks": ["@said"]}, Code.INVALID_PARAMS),
    Row("drift.push", {"to": "nowhere", "blocks": ["@said"]}, Code.CONTEXT_NOT_FOUND),
    Row("drift.push", {"to": "shore", "blocks": ["@said"]}, Code.PERMISSION_DENIED, by="vic"),
    Row("drift.pull", {"source": "shore", "blocks": ["@said"]}, Code.BLOCK_NOT_FOUND),
    Row("drift.pull", {"source": "default", "context": "shore", "blocks": ["@said"]}),
    Row("drift.list", {"context": "shore"}, by="vic"),
    Row("drift.cancel", {"drift_id": "none"}, Code.INVALID_PARAMS),
    Row("context.fork", {"context": "shore", "label": "ebb"}),
    Row("block.create", {"kind": "text", "context": "ebb", "content": "new", "status": "done"}),
    Row("drift.preview", {"source": "ebb"}, by="vic"),
    Row("drift.preview", {"source": "shore"}, Code.INVALID_PARAMS),
    Row("drift.merge", {"source": "ebb", "plan": "another"}, Code.STALE_VERSION),
    Row("drift.merge", {"source": "ebb", "conclude": True}),
    Row("drift.merge", {"source": "ebb"}, Code.INVALID_PARAMS),
    Row("block.splice", {"block_id": "ebb.root.1", "delete_count": 3, "insert": "of", "offset": 0}),
    Row(
        "block.splice", {"block_id": "shore.root.1", "delete_count": 3, "insert": "by", "offset": 0}
    ),
    Row("drift.merge", {"source": "ebb"}, Code.MERGE_CONFLICT),
)

MALFORMED: Final = (
    Row("block.raed", {}, Code.UNKNOWN_TOOL),
    Row("", {}, Code.UNKNOWN_TOOL),
    Row("kernel.tools", "{", Code.INVALID_JSON, text=True),
    Row("kernel.tools", '{"a": NaN}', Code.INVALID_JSON, text=True),
    Row("kernel.tools", '{"a": 1e999}', Code.INVALID_JSON, text=True),
    Row("kernel.tools", "[" * 100_000, Code.INVALID_JSON, text=True),
    Row("kernel.tools", "[]", Code.INVALID_PARAMS, text=True),
    Row("kernel.tools", '"x"', Code.INVALID_PARAMS, text=True),
    Row("kernel.tools", '{"\\ud800": 1}', Code.INVALID_PARAMS, text=True),
    Row("block.read", '{"block_id": "\\udc00"}', Code.INVALID_PARAMS, text=True),
    Row("kernel.tools", "{}", text=True),
)

FILES: Final = (
    Row("file.create", {"path": "src/a.txt", "content": "one\ntwo\n"}),
    Row("file.create", {"path": "src/a.txt"}, Code.INVALID_PARAMS),
    Row("file.create", {"path": "../a.txt"}, Code.INVALID_PARAMS),
    Row("file.create", {"path": "b.txt"}, Code.PERMISSION_DENIED, by="bo"),
    Row("file.open", {"path": "src/a.txt"}, by="vic"),
    Row("file.open", {"path": "src/b.txt"}, Code.INVALID_PARAMS),
    Row("block.read", {"block_id": "file:src/a.txt#L2"}),
    Row("block.read", {"block_id": "file:src/a.txt#L3"}, Code.LINE_OUT_OF_RANGE),
    Row("block.edit", edit("file:src/a.txt", replace(1, 2, "zwei 😀")), by="bo"),
    Row("file.diff", {"path": "src/a.txt"}, by="vic"),
    Row("file.save", {"path": "src/a.txt"}, Code.PERMISSION_DENIED, by="vic"),
    Row("file.save", {"path": "src/a.txt"}, by="bo"),
    Row("file.revert", {"path": "src/a.txt"}, by="bo"),
    Row("file.resolve", {"path": "src/a.txt", "take": "ours"}, Code.INVALID_PARAMS),
    Row("block.create", {"kind": "file", "path": "src/a.txt#L1-L2"}, by="bo"),
    Row("block.create", {"kind": "text", "path": "src/a.txt"}, Code.INVALID_PARAMS),
    Row("file.rename", {"path": "src/a.txt", "to": "src/c.txt"}),
    Row("file.status", by="vic"),
    Row("file.delete", {"path": "src/c.txt"}),
    Row("file.save", {"path": "src/c.txt"}, Code.INVALID_PARAMS),
    Row("file.list", {"glob": "*.txt", "changed": True}),
    Row("file.create", {"path": "d.txt", "content": "one\ntwo\none\n"}),
    Row("file.list", {"glob": "*.txt"}, by="vic", fails=Code.PERMISSION_DENIED),
    Row("file.read", {"path": "d.txt", "start_line": 1}, by="vic"),
    Row("file.read", {"path": "d.txt", "start_line": 9}, Code.LINE_OUT_OF_RANGE),
    Row("file.edit", {"path": "d.txt", "old_text": "two", "new_text": "zwei"}, by="bo"),
    Row("file.edit", {"path": "d.txt", "old_text": "one", "new_text": ""}, Code.CONTENT_MISMATCH),
    Row("file.patch", {"patch": "--- a/d.txt\n+++ b/d.txt\n@@ -2 +2 @@\n-zwei\n+2\n"}),
    Row("file.patch", {"patch": "--- a/d.txt\n+++ b/d.txt\n@@ -2 +2 @@\n-3\n"}, Code.PATCH_FAILED),
    Row("file.search", {"query": "o.e", "regex": True}),
    Row(
        "file.ask",
        {"path": "d.txt", "what": "hover", "line": 0, "column": 0},
        Code.INVALID_PARAMS,
        by="vic",
    ),
)

ROWS: Final = (
    *COMING_IN,
    *CONTEXTS,
    *CREATING,
    *READING,
    *WRITING,
    *TURNING,
    *ARRANGING,
    *STRUCTURES,
    *ATTACHING,
    *CITING,
    *COPIES,
    *LAYOUTS,
    *COMPACTIONS,
    *TALKING,
    *FILE_TEXTS,
    *COMMANDS,
    *FILES,
    *DRIFTS,
    *MALFORMED,
)
