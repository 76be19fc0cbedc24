"""The runs cover the text exactly, and each character stays with who wrote it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.document.authorship import Authorship, Stamp
from antiphon_kernel.types.records import TextSplice

changes = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 5),
        st.text("abc😀\n", max_size=4),
        st.sampled_from("xyz"),
    ),
    max_size=30,
)


@given(changes)
def test_every_character_stays_with_its_author(steps: list[tuple[int, int, str, str]]) -> None:
    authorship = Authorship()
    text, authors = "", ""
    for version, (offset, deleted, inserted, who) in enumerate(steps):
        offset = min(offset, len(text))
        deleted = min(deleted, len(text) - offset)
        splice = TextSplice(offset, deleted, inserted)
        authorship.apply([splice], Stamp(who, version, 0), restores=False)
        text = text[:offset] + inserted + text[offset + deleted :]
        authors = authors[:offset] + who * len(inserted) + authors[offset + deleted :]
        assert "".join(run.stamp.principal * run.length for run in authorship.runs) == authors
        assert all(run.length > 0 for run in authorship.runs)


def test_text_that_comes_back_stays_with_its_first_authors() -> None:
    authorship = Authorship()
    authorship.apply([TextSplice(0, 0, "one ")], Stamp("amy", 1, 0), restores=False)
    authorship.apply([TextSplice(4, 0, "two")], Stamp("bo", 2, 0), restores=False)
    authorship.apply([TextSplice(2, 4, "")], Stamp("amy", 3, 0), restores=False)
    authorship.apply([TextSplice(2, 0, "e tw")], Stamp("amy", 4, 0), restores=True)
    found = [(run.length, run.stamp.principal) for run in authorship.runs]
    assert found == [(4, "amy"), (3, "bo")]
