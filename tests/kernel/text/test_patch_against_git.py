"""`plan_patch` beside `git apply`, over a history made here and over our own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon_kernel.text.patch import plan_patch
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.splicing import apply_splices
from tests.kernel.text.git_history import FilePatch, Git, made_history, mutated, own_history

ROOT = Path(__file__).parents[3]
COMMITS = 220


@pytest.fixture
def git(tmp_path: Path) -> Git:
    return Git(tmp_path)


def patched(text: str, patch: str) -> str | None:
    """The text with the patch; None if it is refused."""
    try:
        return apply_splices(text, plan_patch(text, patch))
    except AntiphonError as error:
        if error.code is not ErrorCode.PATCH_FAILED:
            raise
        return None


def check_exact(changes: Iterable[FilePatch]) -> int:
    count = 0
    for change in changes:
        assert patched(change.before, change.patch) == change.after, change
        count += 1
    return count


def test_patches_of_git_history_apply_as_in_git(git: Git) -> None:
    changes = list(made_history(git, seed=1, commits=COMMITS))
    assert len({change.commit for change in changes}) >= 200
    check_exact(changes)
    for change in changes[::10]:
        if "/dev/null" not in change.patch:
            assert git.apply(change.before, change.patch) == change.after


def test_text_that_has_changed_meanwhile_is_patched_in_the_right_place_or_not_at_all(
    git: Git,
) -> None:
    rng = random.Random(2)
    seen: Counter[str] = Counter()
    for change in made_history(git, seed=3, commits=COMMITS // 2):
        if "/dev/null" in change.patch:
            continue
        target = mutated(rng, change.before)
        found = patched(target, change.patch)
        if found is None:
            seen["refused"] += 1
            continue
        if found == git.merge(change.before, target, change.after):
            seen["merged"] += 1
        else:
            assert found == git.apply(target, change.patch), (target, change)
            seen["as git"] += 1
    assert seen["merged"] > 25 and seen["refused"] > 25
    assert seen["as git"] < 5, seen


def test_history_of_this_repository_applies_too(git: Git) -> None:
    if not check_exact(own_history(git, ROOT, commits=30)):
        pytest.skip("no history here")


def test_patch_of_a_whole_commit_is_refused_when_it_has_several_files(git: Git) -> None:
    commits: dict[str, list[str]] = {}
    for change in made_history(git, seed=5, commits=30):
        commits.setdefault(change.commit, []).append(change.patch)
    several = [patches for patches in commits.values() if len(patches) > 1]
    assert several
    for patches in several:
        with pytest.raises(AntiphonError, match="more than one file"):
            plan_patch("", "".join(patches))
