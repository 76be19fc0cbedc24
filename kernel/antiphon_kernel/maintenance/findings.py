"""Findings of checks and their locations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from antiphon_kernel.storage import ContextRow


class Check(StrEnum):
    """Kind of check."""

    FILE = "file"
    """The database itself is sound, and every row refers to rows that are there."""
    SEQUENCE = "sequence"
    """The transactions of a context are numbered without a hole."""
    TRANSACTION = "transaction"
    """Every transaction can be read and builds only on what came before it."""
    VERSIONS = "versions"
    """A block's version is the number of transactions that touched it."""
    INDEX = "index"
    """The index of blocks, the epoch and the label are those of the document."""
    PARENTS = "parents"
    """Parents exist and nothing is its own ancestor."""
    HEADER = "header"
    """Every header field is as a tool would have written it."""
    ANSWERS = "answers"
    """A tool result answers a tool call."""
    SUMMARY = "summary"
    """A summary that models read from says what it stands for."""
    UNDO = "undo"
    """The units that can be undone or redone are in the transactions."""
    CLIENTS = "clients"
    """With a CRDT client id that belongs to a principal nobody else has written."""
    SNAPSHOT = "snapshot"
    """A snapshot is what the transactions make."""
    REVIVED = "revived"
    """The characters that an undo brought back had been there before."""
    INHERITED = "inherited"
    """A copied text is somebody's from its beginning to its end."""
    SEARCH = "search"
    """The search index says of each block what its document says, as far as it has come."""
    BLOBS = "blobs"
    """The bytes of every attached file are there as they were, and there are no others."""
    AUTH = "auth"
    """Everybody who may come in is known to the journal, in a role that there is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold."""

    check: Check
    message: str
    context: str | None = None
    """Label of the context; None if it is about the whole file."""
    seq: int | None = None

    def as_json(self) -> dict[str, Any]:
        fields = {
            "check": str(self.check),
            "context": self.context,
            "seq": self.seq,
            "message": self.message,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        where = f"{self.context}: " if self.context is not None else ""
        return f"{where}{self.check}: {self.message}"


@dataclass(slots=True)
class ContextReport:
    """Scope and findings of the checks of one context."""

    row: ContextRow
    transactions: int = 0
    blocks: int = 0
    blobs: dict[str, str] = field(default_factory=dict)
    """Hash of each attached file to a block that it is attached with."""
    findings: list[Finding] = field(default_factory=list)

    def find(self, check: Check, message: str, seq: int | None = None) -> None:
        """Take note of something that does not hold."""
        self.findings.append(Finding(check, message, self.row.label, seq))


@dataclass(slots=True)
class Report:
    """Report of the doctor on a journal."""

    contexts: list[ContextReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """About the file as a whole."""

    def find(self, check: Check, message: str) -> None:
        """Take note of something about the file as a whole that does not hold."""
        self.findings.append(Finding(check, message))

    def all(self) -> Iterator[Finding]:
        """Every finding."""
        yield from self.findings
        for context in self.contexts:
            yield from context.findings

    @property
    def clean(self) -> bool:
        return not any(self.all())

    def as_json(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "contexts": [
                {
                    "context_id": one.row.id,
                    "label": one.row.label,
                    "transactions": one.transactions,
                    "blocks": one.blocks,
                    "clean": not one.findings,
                }
                for one in self.contexts
            ],
            "findings": [finding.as_json() for finding in self.all()],
        }
