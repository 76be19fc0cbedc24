"""Unified diffs go exactly where they belong, as by git, or fail as a whole and say why."""

from __future__ import annotations

import difflib
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.text.patch import Hunk, plan_patch, read_patch, split_patch
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.splicing import apply_minimal, apply_splices

LINE = st.text(alphabet="ab \r\x0c\u2028\\@-+\N{GRINNING FACE}", max_size=3)
TEXT = st.one_of(
    st.text(alphabet="ab\n\r\N{GRINNING FACE}", max_size=24),
    st.lists(LINE, max_size=12).map("\n".join),
)
BEFORE = "a\nb\nc\nd\ne\nf\ng\n"


def whole_lines(text: str) -> list[str]:
    lines = [line + "\n" for line in split_lines(text)]
    if text and not text.endswith("\n"):
        lines[-1] = lines[-1][:-1]
    return lines


def diff(before: str, after: str, context: int = 3) -> str:
    """A unified diff by somebody else, with the marks for missing newlines."""
    made = difflib.unified_diff(
        whole_lines(before), whole_lines(after), "a/file", "b/file", n=context
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in made
    )


def patched(text: str, patch: str) -> str:
    return apply_splices(text, plan_patch(text, read_patch(patch)))


def naive_patch(text: str, hunk: Hunk) -> str | None:
    """The rule read aloud: at its number, else at the only place; None: nowhere."""
    lines, old = whole_lines(text), hunk.old
    marks = "".join(line.mark for line in hunk.lines)
    above, below = (len(side) - len(side.lstrip(" ")) for side in (marks, marks[::-1]))
    unfinished = any(not line.text.endswith("\n") for line in hunk.lines)
    places = [at for at in range(len(lines) + 1) if lines[at : at + len(old)] == old]
    if not old:
        places = [0] if not text else []
    if unfinished or (above and not below):
        places = [at for at in places if at + len(old) == len(lines)]
    if hunk.start <= 0 and (above < below or not above):
        places = [at for at in places if at == 0]
    if hunk.start not in places and len(places) != 1:
        return None
    at = hunk.start if hunk.start in places else places[0]
    new = [line.text for line in hunk.lines if line.mark != "-"]
    return "".join([*lines[:at], *new, *lines[at + len(old) :]])


def refusal(text: str, patch: str) -> AntiphonError:
    with raises(ErrorCode.PATCH_FAILED) as caught:
        plan_patch(text, read_patch(patch))
    return caught.value


@given(TEXT, TEXT, st.integers(1, 4))
def test_diff_of_two_texts_makes_one_out_of_the_other(
    before: str, after: str, context: int
) -> None:
    assume(before != after)
    assert (
        apply_minimal(before, plan_patch(before, read_patch(diff(before, after, context)))) == after
    )


@given(TEXT, TEXT, TEXT, st.integers(1, 3))
def test_hunk_on_other_text_applies_where_naive_comparison_finds_it(
    before: str, after: str, other: str, context: int
) -> None:
    assume(before != after)
    patch = diff(before, after, context)
    hunks = read_patch(patch).hunks
    assume(len(hunks) == 1)
    expected = naive_patch(other, hunks[0])
    if expected is None:
        refusal(other, patch)
    else:
        assert patched(other, patch) == expected


@given(st.text(alphabet=" +-@\\,0123\nab/dif", max_size=60))
def test_patch_of_any_text_fails_only_with_patch_failed(patch: str) -> None:
    for text in ("", "a\nb\n", "a"):
        try:
            plan_patch(text, read_patch(patch))
        except AntiphonError as error:
            if error.code is not ErrorCode.PATCH_FAILED:
                raise


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ Kein Zeilenumbruch\n", "A\nb"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\n", "@@ -1 +1 @@ def heading():\n-a\n+b", "b\n"),
        ("-- x\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n--- x\n+++ y\n", "++ y\n"),
        ("a\n", "--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\n+b\n", "b\n"),
    ],
)
def test_patch_applies_context_exactly(before: str, patch: str, after: str) -> None:
    assert patched(before, patch) == after


def test_headers_of_git_and_of_mail_are_read_over() -> None:
    patch = (
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] change\n\n"
        "- a list\n+ in the message\n---\n f | 2 +-\n\n"
        "diff --git a/f b/g\nold mode 100644\nnew mode 100755\nsimilarity index 90%\n"
        "rename from f\nrename to g\nindex 7898192..6178079 100644\n--- a/f\n+++ b/g\n"
        "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n"
    )
    assert patched("a\n", patch) == "b\n"
    assert (
        patched("a\n", patch.split("---", 1)[0] + patch[patch.index("diff") : -50][:120]) == "a\n"
    )


def test_headers_of_creation_and_deletion_hold() -> None:
    create = "diff --git a/f b/f\nnew file mode 100644\nindex 0..1\n"
    added = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    delete = "diff --git a/f b/f\ndeleted file mode 100644\nindex 1..0\n"
    removed = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    for header in ("", create):
        assert patched("", header + added) == "a\n"
        assert "creates" in refusal("x\n", header + added).message
    for header in ("", delete):
        assert patched("a\n", header + removed) == ""
        assert "deletes" in refusal("a\nb\n", header + removed).message
    assert patched("", create) == patched("", delete) == ""
    assert "deletes" in refusal("x", delete).message


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "no hunk"),
        ("just words", "no hunk"),
        ("--- a/f\n+++ b/f\n", "no hunk"),
        ("@@ ... @@\n-a\n+b\n", "expected @@ -START,COUNT"),
        ("@@@ -1 -1 +1 @@@\n", "expected @@ -START,COUNT"),
        ("@@ -1 +1 @@\n-a\n+b\n c\n", "has 2 and 2"),
        ("@@ -1,3 +1,3 @@\n-a\n+b\n", "has 1 and 1"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\nx\n", "has 1 and 1"),
        ("@@ -1,2 +1 @@\n-a\n+b\n+c\n c\n", "has 2 and 3"),
        ("@@ -1 +1 @@\n-a\n+b\nsomething\n", "neither part of a hunk"),
        ("@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n", "old lines behind"),
        ("@@ -1 +1,2 @@\n-a\n+b\n\\ No newline at end of file\n+c\n", "new lines behind"),
        ("diff --git a/x b/x\nGIT binary patch\n", "binary"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n", "more than one file"),
        ("diff --git a/f b/f\nnew mode 1\ndiff --git a/g b/g\n", "more than one file"),
        ("@@ -1 +1 @@\n-a\n+b\n-- \n2.3\n\ndiff --git a/f b/f\n", "more than one file"),
    ],
)
def test_patch_that_cannot_be_read_says_what_was_expected(patch: str, said: str) -> None:
    error = refusal("a\nb\nc\n", patch)
    assert said in error.message
    assert len(error.details["errors"]) == 1


def test_hunk_moves_to_the_only_place_that_has_its_lines() -> None:
    after = "a\nb\nc\nD\ne\nf\ng\n"
    patch = diff(BEFORE, after)
    assert patched("x\ny\n" + BEFORE, patch) == "x\ny\n" + after
    assert patched(BEFORE + "z\n", patch) == after + "z\n"
    error = refusal("x\n" + BEFORE + BEFORE, patch)
    assert error.details["hunks"][0]["places"] == [1, 8]
    assert "(the lines 1, 8)" in error.message


def test_hunks_after_moved_hunk_are_not_trusted_by_number() -> None:
    text = "k\nk\nk\nx\ny\nz\n"
    patch = "@@ -2 +2 @@\n-k\n+K\n@@ -5 +5 @@\n-y\n+Y\n"
    assert patched(text, patch) == "k\nK\nk\nx\nY\nz\n"
    error = refusal("k\n" + text, patch)
    assert [one["hunk"] for one in error.details["hunks"]] == [0]
    assert error.details["hunks"][0]["places"] == [0, 1, 2, 3]


def test_ends_of_the_text_are_context() -> None:
    at_end = "@@ -6,2 +6,3 @@\n f\n g\n+h\n"
    assert patched(BEFORE, at_end) == BEFORE + "h\n"
    assert "the end of the text" in refusal("y\n" + BEFORE + "z\n", at_end).message
    at_start = "@@ -1,2 +1,3 @@\n+0\n a\n b\n"
    assert patched(BEFORE, at_start) == "0\n" + BEFORE
    assert "the beginning of the text" in refusal("z\n" + BEFORE, at_start).message
    unfinished = "@@ -7 +7 @@\n-g\n+G\n\\ No newline at end of file\n"
    assert patched(BEFORE, unfinished) == BEFORE[:-2] + "G"
    refusal(BEFORE + "z\n", unfinished)


def test_hunk_without_context_below_at_its_line_goes_there_if_its_lines_are_nowhere_else() -> None:
    hunk = "@@ -2,2 +2,3 @@\n b\n c\n+x\n"
    assert patched(BEFORE, hunk) == BEFORE.replace("c\n", "c\nx\n")
    message = refusal(BEFORE + "b\nc\nd\n", hunk).message
    assert "no context below its changes, which means the end of the text" in message


def test_lines_without_any_context_are_put_nowhere() -> None:
    assert "nothing says where" in refusal(BEFORE, "@@ -3,0 +4 @@\n+x\n").message


def test_every_hunk_that_fails_has_its_own_error() -> None:
    far = BEFORE + "".join(f"{n}\n" for n in range(20))
    patch = diff(far, far.replace("b", "B").replace("15", "fifteen"))
    text = far.replace("c", "see").replace("16", "sixteen")
    error = refusal(text, patch)
    assert len(error.details["errors"]) == len(error.details["hunks"]) == 2
    first, second = error.details["hunks"]
    assert "line 2 should be 'c\\n', but is 'see\\n'" in first["message"]
    assert (first["hunk"], first["line"]) == (0, 0)
    assert first["expected"] == ["a\n", "b\n", "c\n", "d\n", "e\n"]
    assert first["found"] == ["a\n", "b\n", "see\n", "d\n", "e\n"]
    assert "'16\\n', but is 'sixteen\\n'" in second["message"]
    assert "1 more failed" in error.message


def test_missing_newline_and_a_carriage_return_are_shown() -> None:
    patch = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert "'b\\n', but is 'b'" in refusal("a\nb", patch).message
    assert "'a\\n', but is 'a\\r\\n'" in refusal("a\r\nb\r\n", patch).message
    assert "the text has only 1 lines" in refusal("a\n", patch).message


def test_hunks_out_of_order_or_over_each_other_are_refused() -> None:
    back = "@@ -5 +5 @@\n-e\n+E\n@@ -2 +2 @@\n-b\n+B\n"
    assert "in the order of the text" in refusal(BEFORE, back).message
    shared = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -3,3 +3,3 @@\n c\n-d\n+D\n e\n"
    assert "in the order of the text" in refusal(BEFORE, shared).message


def test_patch_of_very_many_hunks_that_are_not_there_is_refused_in_time() -> None:
    text = "a\n" * 100_000
    patch = "".join(f"@@ -{n} +{n} @@\n-b\n+c\n" for n in range(1, 5_001))
    begun = time.process_time()
    error = refusal(text, patch)
    assert time.process_time() - begun < 5
    assert len(error.details["errors"]) == 5_000
    assert "too many hunks" in error.details["errors"][-1]


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


def patched_or_none(text: str, patch: str) -> str | None:
    """The text with the patch; None if it is refused."""
    try:
        return apply_splices(text, plan_patch(text, read_patch(patch)))
    except AntiphonError as error:
        if error.code is not ErrorCode.PATCH_FAILED:
            raise
        return None


def test_patch_of_git_is_applied_as_by_git(tmp_path: Path) -> None:
    rng, git = random.Random(1), Git(tmp_path)
    for context in (1, 2, 3) * 7:
        before = some_text(rng)
        after = mutated(rng, before)
        if patch := git.diff(before, after, f"-U{context}"):
            assert patched_or_none(before, patch) == after, (before, patch)
            assert git.apply(before, patch) == after


def test_text_that_has_changed_meanwhile_is_patched_in_the_right_place_or_not_at_all(
    tmp_path: Path,
) -> None:
    rng, git, seen = random.Random(2), Git(tmp_path), Counter[str]()
    for _ in range(80):
        before = some_text(rng)
        after, target = mutated(rng, before), mutated(rng, before)
        found = patched_or_none(target, patch) if (patch := git.diff(before, after)) else None
        if found is None:
            seen["refused"] += 1
        elif found == git.merge(before, target, after):
            seen["merged"] += 1
        else:
            assert found == git.apply(target, patch), (target, patch)
            seen["as git"] += 1
    assert seen["merged"] > 15 and seen["refused"] > 15 > seen["as git"], seen


OF_TWO = """\
From somebody, with words before it
diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1 +1 @@
--- a
+++ b
--- old.txt\t2020-01-01
+++ old.txt
@@ -1 +1 @@
-a
\\ No newline at end of file
+b
--- /dev/null
+++ b/new/y
@@ -0,0 +1 @@
+y
"""


def test_patch_of_several_files_is_split_where_headers_are_and_not_lines_like_them() -> None:
    parts = split_patch(OF_TWO)
    assert [(one.path, one.creates) for one in parts] == [
        ("x", False),
        ("old.txt", False),
        ("new/y", True),
    ]
    texts = zip(("-- a\n", "a", ""), parts, strict=True)
    made = [apply_splices(text, plan_patch(text, part)) for text, part in texts]
    assert made == ["++ b\n", "b\n", "y\n"]


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "names no file"),
        ("diff --git a/x b/x\nnew file mode 100644\n", "has no lines --- and +++"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "deletes"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "renames 'x'"),
        ("--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n" * 2, "Two of its parts are about 'x'"),
    ],
)
def test_patch_that_is_about_no_file_is_refused(patch: str, said: str) -> None:
    with raises(ErrorCode.PATCH_FAILED) as error:
        split_patch(patch)
    assert said in error.value.message
