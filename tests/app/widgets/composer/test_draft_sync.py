from __future__ import annotations

from itertools import count
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.composer import PrivateDraftFile
from antiphon.widgets.composer.draft_sync import LOCAL_BLOCK, DraftSync
from antiphon.widgets.editor import ORIGIN as TYPED
from antiphon_kernel.document.changes import REMOTE
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, ContextId
from tests.clocks import ManualClock

ME = "a" * 32


def shared_document(client: int = 7) -> Document:
    return Document.create(client, context=ContextId("c" * 32), epoch="e" * 32, label="default")


def own_draft(
    shared: Document,
    clock: ManualClock | None = None,
    first: int = 0,
    folder: Path | None = None,
) -> DraftSync:
    """A draft that is kept in a folder, if there is one, while it is private."""
    numbers = count(DRAFT_SEQ_MIN + first)
    return DraftSync(
        shared,
        clock=clock or ManualClock(),
        new_seq=lambda: next(numbers),
        private=None if folder is None else PrivateDraftFile(folder, "kernel"),
    )


def attached(folder: Path | None = None) -> tuple[Document, DraftSync]:
    shared = shared_document()
    draft = own_draft(shared, folder=folder)
    draft.attach(ME)
    return shared, draft


def type_in(draft: DraftSync, text: str) -> None:
    for key in text:
        draft.local.splice(LOCAL_BLOCK, len(draft.text), 0, key)


def one_sent() -> tuple[Document, DraftSync, str]:
    """A draft whose first text has been detached, and its block."""
    shared, draft = attached()
    type_in(draft, "one")
    return shared, draft, draft.detach()


def test_draft_without_text_is_not_shared() -> None:
    shared, draft = attached()
    assert len(shared) == 0
    type_in(draft, "h")
    assert draft.block is not None
    header = shared.header(draft.block)
    assert (header.status, header.author, header.parent) == (Status.PENDING, ME, None)
    assert shared.text(draft.block) == "h"


def test_draft_typed_before_kernel_answers_is_shared_afterwards() -> None:
    shared = shared_document()
    draft = own_draft(shared)
    type_in(draft, "early")
    assert len(shared) == 0
    draft.attach(ME)
    assert shared.text(str(draft.block)) == "early"


def test_draft_from_last_time_is_taken_up_and_what_was_typed_meanwhile_follows() -> None:
    shared = shared_document()
    clock = ManualClock()
    before = own_draft(shared, clock)
    before.attach(ME)
    type_in(before, "yesterday")
    before.close()
    clock.ms += 1000
    draft = own_draft(shared, clock, first=100)
    type_in(draft, "today")
    draft.attach(ME)
    assert draft.text == "yesterday\ntoday"
    assert draft.block == before.block
    assert draft.block is not None and shared.text(draft.block) == draft.text


def test_draft_of_another_window_is_left_alone() -> None:
    shared, first = attached()
    type_in(first, "mine")
    assert first.block is not None
    second = own_draft(shared, first=100)
    second.attach(ME, {first.block})
    assert second.text == ""
    type_in(second, "x")
    assert second.block != first.block


def test_draft_that_comes_back_stands_before_what_was_typed_since() -> None:
    shared, draft, sent = one_sent()
    assert (draft.text, shared.text(sent)) == ("", "one")
    type_in(draft, "two")
    other = draft.block
    assert other not in (None, sent)
    draft.restore(sent, "one")
    assert draft.text == "one\ntwo" == shared.text(sent)
    assert draft.block == sent
    assert shared.text(str(other)) == ""


def test_restore_of_an_emptied_draft_brings_back_the_sent_text() -> None:
    shared, draft, released = one_sent()
    with shared.transaction(REMOTE):
        shared.splice(released, 0, 3, "")
    draft.restore(released, "one")
    assert (draft.text, shared.text(released)) == ("one", "one")


def test_restore_without_the_block_keeps_the_sent_text_before_the_next() -> None:
    shared, draft = attached()
    draft.restore("gone", "one")
    assert (draft.text, draft.block) == ("one", None)
    type_in(draft, "!")
    assert shared.text(str(draft.block)) == "one!"
    draft.restore("gone", "zero")
    assert draft.text == shared.text(str(draft.block)) == "zero\none!"


def test_succeed_shares_a_message_that_was_not_accepted_when_it_is_edited() -> None:
    before, shared = own_draft(shared_document()), shared_document()
    before.attach(ME)
    type_in(before, "refused")
    after = own_draft(shared)
    after.succeed(before)
    after.attach(ME)
    assert (after.text, after.unheard, len(shared)) == ("refused", "refused", 0)
    type_in(after, "?")
    assert (shared.text(str(after.block)), after.unheard) == ("refused?", "")
    before.restore("gone", "sent")
    assert after.text == "sent\nrefused?"


def test_draft_that_was_submitted_while_its_document_was_replaced_is_let_go() -> None:
    written, before = attached()
    type_in(before, "one")
    shared = Document(client_id=8)
    shared.apply_update(written.update_since())
    after = own_draft(shared)
    after.succeed(before)
    shared.set_fields(str(before.block), status=Status.DONE)
    after.attach(ME)
    assert (after.text, after.block, shared.text(str(before.block))) == ("", None, "one")


def test_draft_that_was_submitted_without_what_was_typed_last_stays() -> None:
    written, before = attached()
    type_in(before, "one")
    shared = Document(client_id=8)
    shared.apply_update(written.update_since())
    type_in(before, " two")
    after = own_draft(shared)
    after.succeed(before)
    shared.set_fields(str(before.block), status=Status.DONE)
    after.attach(ME)
    assert (after.text, after.unheard) == ("one two", "one two")


def test_text_that_is_put_back_stands_before_what_came_since() -> None:
    draft = DraftSync(Document(client_id=5))
    draft.write("since")
    draft.put_back("/rename No")
    assert draft.text == "/rename No\nsince"


def test_draft_that_was_submitted_all_the_same_is_let_go() -> None:
    shared, draft, sent = one_sent()
    draft.restore(sent, "one")
    assert (draft.text, draft.block) == ("one", sent)
    shared.set_fields(sent, status=Status.DONE)
    assert (draft.text, draft.block) == ("", None)
    draft.restore(sent, "one")
    assert (draft.text, draft.block) == ("", None)
    type_in(draft, "two")
    assert shared.text(sent) == "one"


def test_message_is_typed_here_until_something_comes_from_elsewhere() -> None:
    shared, draft = attached()

    def typed(text: str) -> bool:
        with draft.local.transaction(TYPED):
            draft.local.append(LOCAL_BLOCK, text)
        return draft.is_typed_here

    assert typed("!ls")
    shared.splice(str(draft.block), 0, 0, "an undo, or another window ")
    assert not draft.is_typed_here
    assert not typed(" -l")
    draft.clear()
    assert typed("!ls")
    draft.write("!copied")
    assert not draft.is_typed_here
    assert typed(" and edited"), "the person has looked at it"
    draft.write("!back", typed_here=True)
    assert draft.is_typed_here


pieces = st.text(st.sampled_from("ab\n é😀\r\u200be\u0301"), max_size=4)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(0, 5), pieces), max_size=30)
)
def test_message_and_draft_are_equal_whoever_writes(
    edits: list[tuple[bool, int, int, str]],
) -> None:
    (shared, draft), elsewhere = attached(), shared_document(client=8)
    type_in(draft, "x")
    block = draft.block
    assert block is not None
    for local, at, deleted, inserted in edits:
        size = len(draft.text)
        at = min(at, size)
        deleted = min(deleted, size - at)
        if local:
            draft.local.splice(LOCAL_BLOCK, at, deleted, inserted)
        else:
            elsewhere.apply_update(shared.update_since(elsewhere.state_vector()))
            elsewhere.splice(block, at, deleted, inserted)
            shared.apply_update(elsewhere.update_since(shared.state_vector()), REMOTE)
        assert draft.text == shared.text(block)


def test_private_draft_is_in_no_shared_block_until_it_is_shared(tmp_path: Path) -> None:
    shared, draft = attached(tmp_path)
    type_in(draft, "seen")
    before = draft.block
    draft.make_private()
    type_in(draft, " secret")
    assert (draft.text, draft.block) == ("seen secret", None)
    assert [shared.text(block) for block in shared.block_ids()] == [""]
    draft.make_shared()
    assert draft.block == before
    assert [shared.text(block) for block in shared.block_ids()] == ["seen secret"]


def test_private_draft_is_in_a_file_of_its_author_only_and_comes_back(tmp_path: Path) -> None:
    shared, before = attached(tmp_path)
    before.make_private()
    type_in(before, "secret")
    (file,) = tmp_path.rglob("*.txt")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("secret", 0o600)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    before.close()
    draft = own_draft(shared, folder=tmp_path)
    type_in(draft, "more")
    draft.attach(ME)
    assert (draft.text, draft.is_private, len(shared)) == ("secret\nmore", True, 0)
    draft.clear()
    assert not list(tmp_path.rglob("*.txt"))


def test_private_draft_of_another_window_is_left_alone(tmp_path: Path) -> None:
    shared, first = attached(tmp_path)
    second = own_draft(shared, folder=tmp_path)
    first.make_private()
    type_in(first, "first")
    second.attach(ME)
    assert (second.text, second.is_private) == ("", False)
    second.make_private()
    type_in(second, "second")
    second.close()
    third = own_draft(shared, folder=tmp_path)
    third.attach(ME)
    assert third.text == "second"


def test_private_draft_that_was_not_submitted_is_private_again(tmp_path: Path) -> None:
    shared, draft = attached(tmp_path)
    draft.make_private()
    type_in(draft, "secret")
    draft.share()
    sent = draft.detach()
    assert shared.text(sent) == "secret"
    type_in(draft, "next")
    draft.restore(sent, "secret")
    assert (draft.text, draft.block, shared.text(sent)) == ("secret\nnext", None, "")


def test_private_draft_goes_on_after_its_document_was_replaced(tmp_path: Path) -> None:
    _, former = attached(tmp_path)
    former.make_private()
    type_in(former, "secret")
    shared = shared_document(8)
    draft = own_draft(shared)
    draft.succeed(former)
    former.close()
    draft.attach(ME)
    type_in(draft, "!")
    (file,) = tmp_path.rglob("*.txt")
    assert (draft.is_private, file.read_text(), len(shared)) == (True, "secret!", 0)
    assert draft.step(-1) and draft.text == ""


def test_private_draft_that_cannot_be_kept_is_told_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("in the way")
    told: list[str] = []
    file = PrivateDraftFile(tmp_path, "kernel")
    draft = DraftSync(shared_document(), private=file, notify=told.append)
    draft.attach(ME)
    draft.make_private()
    type_in(draft, "secret")
    assert draft.text == "secret"
    assert len(told) == 1 and "cannot be kept" in told[0]
