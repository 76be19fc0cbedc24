"""Text of the page of an empty context, and of the line in the place of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from antiphon.actions import Mode, shown_key
from antiphon.keymap import KeyMap
from antiphon.local_user import LocalUser
from antiphon.screens.known_models import KnownModels
from antiphon.widgets.block_list import CellModel
from antiphon.widgets.first_page import FirstPageContent
from antiphon.widgets.sidebar import ContextName
from antiphon_kernel.types.quoting import join_names

FIRST_PAGE_CONTEXTS: Final = 3
"""Other contexts that the page of an empty one names."""


def is_empty(source: CellModel) -> bool:
    """Return whether nothing is shown; a message on its way is a draft, and shown."""
    document = source.document
    blocks = document.block_ids()
    return not any(not document.is_draft(one) or source.deliveries.label(one) for one in blocks)


def first_page_content(
    keymap: KeyMap, models: KnownModels, user: LocalUser, contexts: Sequence[ContextName]
) -> FirstPageContent:
    """Return the keys, who answers, and the contexts that were written in last."""
    keys = {action.name: action.keys for action in keymap.actions}
    named = (("send", "sends what you write below"), ("palette", "everything, by name"))
    may_write = user.refusal is None
    shown = [
        (shown_key(keys[name][0]), does)
        for name, does in named
        if keys[name] and (may_write or name != "send")
    ]
    if may_write:
        does = "runs a command, as in !ls; / lists commands"
        shown.append(("!", does) if user.may_run_commands else ("/", "lists commands"))
    answers = [models.nobody] if models.is_known else []
    if not may_write:
        answers = ["Nothing has been written here yet."]
    elif models.here.default is not None:
        default = models.here.default
        others = [name for name in models.here.names if name != default]
        answers = [f"{default} answers."]
        if others:
            answers = [f"{default} answers; @ addresses {join_names(others)}."]
    latest = sorted(contexts, key=lambda one: one.version, reverse=True)
    return FirstPageContent(
        keys=shown,
        answers=answers,
        contexts=[
            (one.label, f"●{one.unread}" if one.unread else "")
            for one in latest[:FIRST_PAGE_CONTEXTS]
        ],
    )


def placeholder(
    keymap: KeyMap, user: LocalUser, mode: Mode, *, is_private: bool, finds: bool
) -> Sequence[str]:
    """Return what an empty message says in a mode: what it is for, and the way out."""
    key = keymap.shown_key("write")
    if (denial := user.denial) is not None:
        return tuple(map(keymap.name_keys, denial.instead))
    if is_private:
        return "Private: seen by nobody until sent", keymap.name_keys("<key:private> shares")
    match mode:
        case Mode.WRITE:
            what = "Message, or !command" if user.may_run_commands else "Message"
            return what, "Esc ends the search" if finds else "Esc to the cells"
        case Mode.EDIT:
            return ("Esc leaves the cell",)
        case Mode.NAVIGATE:
            return (f"{key} to write",) if key else ()
        case _:
            return ("Esc goes back",)
