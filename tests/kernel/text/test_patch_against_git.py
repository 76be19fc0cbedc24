"""`plan_patch` beside git: its diffs of random texts go where git puts them, or nowhere."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from antiphon_kernel.text.patch import plan_patch
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.splicing import apply_splices

WORDS = (
    "line block patch text naïve 漢字 \N{GRINNING FACE} e\u0301te\u0301 \u202eabc a\u2028b x\x0cy"
    " tab\there offset == None 0x1F -- ++ @@ \\ value"
).split(" ")


class Git:
    """Git in a folder of its own, untouched by anybody's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run("init", "--quiet", ".")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-c", "core.autocrlf=false", *arguments]
        return subprocess.run(command, capture_output=True, cwd=self.folder, check=False)

    def _write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name).write_bytes(text.encode())

    def diff(self, before: str, after: str, *options: str) -> str:
        """The patch that makes one text into another; empty if they are the same."""
        self._write(before=before, after=after)
        return self._run("diff", "--no-index", *options, "before", "after").stdout.decode()

    def apply(self, text: str, patch: str) -> str | None:
        """A text as `git apply` leaves it; None if it refuses."""
        hunks = patch[patch.index("\n@@ ") + 1 :]
        self._write(target=text, patch=f"--- a/target\n+++ b/target\n{hunks}")
        # A patch without any context is given the leave that git wants for it.
        options = () if "\n " in hunks else ("--unidiff-zero",)
        done = self._run("apply", "--whitespace=nowarn", *options, "patch")
        return None if done.returncode else (self.folder / "target").read_bytes().decode()

    def merge(self, base: str, ours: str, theirs: str) -> str | None:
        """Both changes of `base` together; None if they touch each other."""
        self._write(base=base, ours=ours, theirs=theirs)
        done = self._run("merge-file", "-p", "ours", "base", "theirs")
        return None if done.returncode else done.stdout.decode()


def some_line(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(6)))


def some_text(rng: random.Random) -> str:
    """Functions, or prose with lines that end in either way; the last one may be unfinished."""
    if rng.random() < 0.6:
        lines = [
            line
            for _ in range(rng.randrange(3, 12))
            for line in (f"def {rng.choice('abcdefgh')}(self):", f"    {some_line(rng)}", "")
        ]
    else:
        lines = [some_line(rng) for _ in range(rng.randrange(5, 60))]
    return rng.choice(("\n", "\r\n")).join(lines) + rng.choice(("", "\n"))


def mutated(rng: random.Random, text: str) -> str:
    """The text with a few lines changed."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                lines.insert(at, rng.choice(lines))
            case 1:
                lines.insert(at, some_line(rng))
            case 2 if len(lines) > 1:
                del lines[at]
            case 3:
                lines[at] += "!"
            case 4:
                lines[at:at] = lines[at : at + rng.randrange(1, 12)]
            case _:
                lines[0:0] = [some_line(rng) for _ in range(rng.randrange(1, 4))]
    return "\n".join(lines)


def patched(text: str, patch: str) -> str | None:
    """The text with the patch; None if it is refused."""
    try:
        return apply_splices(text, plan_patch(text, patch))
    except AntiphonError as error:
        if error.code is not ErrorCode.PATCH_FAILED:
            raise
        return None


@pytest.mark.parametrize("context", range(1, 4))
def test_patch_of_git_is_applied_as_by_git(tmp_path: Path, context: int) -> None:
    rng, git = random.Random(context), Git(tmp_path)
    for _ in range(20):
        before = some_text(rng)
        after = mutated(rng, before)
        if patch := git.diff(before, after, f"-U{context}"):
            assert patched(before, patch) == after, (before, patch)
            assert git.apply(before, patch) == after


def test_text_that_has_changed_meanwhile_is_patched_in_the_right_place_or_not_at_all(
    tmp_path: Path,
) -> None:
    rng, git, seen = random.Random(2), Git(tmp_path), Counter[str]()
    for _ in range(80):
        before = some_text(rng)
        after, target = mutated(rng, before), mutated(rng, before)
        found = patched(target, patch) if (patch := git.diff(before, after)) else None
        if found is None:
            seen["refused"] += 1
        elif found == git.merge(before, target, after):
            seen["merged"] += 1
        else:
            assert found == git.apply(target, patch), (target, patch)
            seen["as git"] += 1
    assert seen["merged"] > 15 and seen["refused"] > 15 > seen["as git"], seen
