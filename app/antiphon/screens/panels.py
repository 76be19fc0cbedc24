"""Panels over the document: the contexts of the kernel, and its people, each with what to do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from textual import work
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.strip import Strip

from antiphon.actions import shown_key
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row
from antiphon.render.markdown_source import first_line
from antiphon.screens.action_scope import ActionScope
from antiphon.screens.following import Following
from antiphon.screens.known_contexts import (
    create_context,
    fork_context,
    list_contexts,
    rename_context,
)
from antiphon.screens.modals import ConfirmModal, HintingModal, LineModal, TextPage, wrapped
from antiphon.session import KernelCalls, Session
from antiphon.time_format import format_absolute, format_time_since
from antiphon.widgets.sidebar import ContextName, context_entries
from antiphon.widgets.status import Keys, StatusSpan, cut_to, key_rows
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import count_of
from antiphon_kernel.types.roles import AccessRole

REFRESH_SECONDS: Final = 1.0
"""How long a panel may show what is no longer so."""

LONGEST_LABEL: Final = 64
LONGEST_WHY: Final = 200
"""Characters of why a session is ended, as the kernel takes it."""

_HOSTED: Final = {"ssh": " over SSH", "web": " in a browser"}
_WAYS: Final = {"tcp": " over TCP", **_HOSTED}
"""Ways from elsewhere by which somebody can be connected, in words."""

_LABEL_ASKED: Final = "Label: a-z, 0-9, _ and -"


class _ChoicePage(TextPage):
    """Rows of entries, one of which is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "screen.choose(-1)", show=False),
        Binding("down,j", "screen.choose(1)", show=False),
        Binding("g,home", "screen.choose(-1000000)", show=False),
        Binding("G,end", "screen.choose(1000000)", show=False),
    ]

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel.rows)
        self._panel = panel

    async def on_click(self, event: Click) -> None:
        self._panel.choose_at(round(self.scroll_y) + event.y)
        if event.chain > 1:
            await self._panel.run_action("open")

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if round(self.scroll_y) + y not in self._panel.chosen_rows:
            return strip
        return Strip(Segment.apply_style(strip, post_style=self.cell_theme.focus_surface))


class Panel(HintingModal[None]):
    """A list that is kept up to date while it is shown, and keys for the chosen entry."""

    heading: str

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,ctrl+c", "dismiss", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.kernel = KernelCalls(session, self.notify_person)
        self.ids: Sequence[str] = ()
        """The entries, in order."""
        self._rows_of: dict[str, range] = {}
        self._at = 0
        self._chosen_id: str | None = None
        self._notice = ""
        self._page = _ChoicePage(self)
        self.shown = (self._page,)

    @classmethod
    def own_keys(cls) -> Keys:
        """Return the keys for the chosen entry, each with what it does."""
        named = (one for one in cls.BINDINGS if isinstance(one, Binding) and one.description)
        return [(shown_key(one.key.partition(",")[0]), one.description) for one in named]

    def on_mount(self) -> None:
        self._page.focus()
        self.set_interval(REFRESH_SECONDS, self.refresh_entries)
        self.refresh_entries()

    def notify_person(self, text: str, *, weighty: bool = False) -> None:
        """Say something below the list; on the last row of the screen if the list is longer.

        Above a question it is said there.
        """
        if isinstance(self.app.screen, LineModal):
            self.app.screen.hint(text)
            return
        self._notice = text
        self._page.reload()
        if text and self._page.max_scroll_y:
            self.hint(text)
        elif text:
            self.hints.add(text)

    def refresh_entries(self) -> None:
        self.run_one_of("entries", self._refresh)

    async def _refresh(self) -> None:
        await self.fetch()
        if self.chosen is not None:  # from here on the entry, wherever it comes to stand
            self.choose_id(self.chosen)
        self._page.reload()

    @abstractmethod
    async def fetch(self) -> None:
        """Ask the kernel for the entries."""

    @abstractmethod
    def entry_rows(self, index: int, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        """Return the rows of an entry."""

    def head_rows(self, index: int, theme: CellTheme) -> list[list[StatusSpan]]:
        """Return the rows above an entry that begins another part of the list."""
        del index, theme
        return []

    @property
    def chosen(self) -> str | None:
        """The id of the chosen entry; None if there is none."""
        ids = self.ids
        if self._chosen_id in ids:
            return self._chosen_id
        return ids[min(self._at, len(ids) - 1)] if ids else None

    def action_choose(self, by: int) -> None:
        """Choose another entry, so many below."""
        self._notice = ""
        before, ids = self.chosen, self.ids
        if before is not None:
            at = list(ids).index(before) + by
            self.choose_id(ids[max(0, min(at, len(ids) - 1))])
        self._page.reload()
        if self.chosen == before:
            self.hint(f"This is the {'last' if by > 0 else 'first'} of them.")
        first, height = self.chosen_rows.start, self._page.size.height
        if not self._page.scroll_y <= first < self._page.scroll_y + height - 2:
            self._page.scroll_to(y=max(0, first - height // 2), animate=False)

    @property
    def chosen_rows(self) -> range:
        return self._rows_of.get(self.chosen or "", range(0))

    def choose_at(self, row: int) -> None:
        """Choose the entry on a row of the panel, if there is one."""
        entry = next((one for one, rows in self._rows_of.items() if row in rows), None)
        if entry is not None:
            self._notice = ""
            self.choose_id(entry)
            self._page.reload()

    def choose_id(self, entry: str) -> None:
        if entry in self.ids:
            self._at, self._chosen_id = list(self.ids).index(entry), entry

    def rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        rows = [[StatusSpan(self.heading, theme.heading_2)], []]
        self._rows_of.clear()
        for index, entry in enumerate(self.ids):
            rows += self.head_rows(index, theme)
            more = self.entry_rows(index, width, theme)
            self._rows_of[entry] = range(len(rows), len(rows) + len(more))
            rows += more
        rows.append([])
        if self._notice:
            rows += [[StatusSpan(line, theme.unread)] for line in wrapped(self._notice, width)]
            rows.append([])
        return [*rows, *key_rows((*self.own_keys(), ("Esc", "leave")), width, theme)]


class ContextsPanel(Panel):
    """The contexts of the kernel, forks below what they were copied from."""

    heading = "Contexts"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open"),
        Binding("n", "new", "new"),
        Binding("F", "fork", "fork"),
        Binding("R", "rename", "rename"),
        Binding("A", "archive", "archive, bring back"),
        Binding("z", "archived", "archived ones"),
    ]

    def __init__(self, scope: ActionScope, show: Callable[[str], None]) -> None:
        """`show` opens a context."""
        super().__init__(scope.session)
        self._memory = scope.memory
        self._here = scope.session.document.context or ""
        self._show = show
        self._shows_archived = False
        self._entries: Sequence[tuple[ContextName, str]] = ()
        self._texts: dict[ContextName, str] = {}
        """The line below each, as it was listed."""

    async def fetch(self) -> None:
        found = await list_contexts(self.kernel, self._memory.seen(), archived=self._shows_archived)
        is_first = not self._entries
        self._entries = list(context_entries(found))
        self.ids = [one.id for one, _ in self._entries]
        if is_first:
            self.choose_id(self._here)
            self._page.reload()
        for one in found:
            if one not in self._texts:
                self._texts[one] = await self._summary(one)
                self._page.reload()

    async def _summary(self, one: ContextName) -> str:
        """Return what a merge of a fork would ask, from where drifts came, and the last words."""
        parts = [f"⇢ {one.drifted_from}"] if one.drifted_from else []
        if one.ahead and one.behind:
            preview = await self.kernel.call("drift.preview", {"source": one.id}, "Not compared")
            if preview is not None and preview["conflicts"]:
                parts.insert(0, count_of(preview["conflicts"], "conflict"))
        return " · ".join(filter(None, [*parts, await self._last_words(one.id)]))

    async def _last_words(self, context: str) -> str:
        """Return the first line of the text that was written last in a context, if there is any."""
        try:
            page = await self.kernel.session.call("context.page", {"context": context})
        except AntiphonError as error:
            return f"cannot be opened: {error.message}"
        for block in reversed(page["blocks"]):
            if block["kind"] == BlockKind.TEXT and (text := block["content"].strip()):
                return first_line(text)
        return ""

    def entry_rows(self, index: int, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        one, mark = self._entries[index]
        here = StatusSpan("▸ " if one.id == self._here else "  ", theme.focus)
        apart = StatusSpan(f"  {one.drifted}" if one.drifted else "", theme.dim)
        unread = StatusSpan(f" ●{one.unread}" if one.unread else "", theme.unread)
        archived = " · archived" if one.is_archived else ""
        age = StatusSpan(f"  {format_time_since(one.changed_at)}{archived}", theme.dim)
        room = width - cell_len(f"{here.text}{apart.text}{unread.text}{age.text}")
        label = StatusSpan(cut_to(mark + one.label, room), theme.strong)
        said = self._texts.get(one) or "nothing has been written yet"
        return [[here, label, apart, unread, age], [StatusSpan(f"    {said}", theme.dim)]]

    @property
    def _chosen(self) -> ContextName | None:
        chosen = self.chosen
        return next((one for one, _ in self._entries if one.id == chosen), None)

    def action_open(self) -> None:
        self._open(self.chosen)

    def _open(self, context: str | None) -> None:
        if context is not None:
            self.dismiss(None)
            if context != self._here:
                self._show(context)

    @work(exit_on_error=False)
    async def action_new(self) -> None:
        make = partial(create_context, self.kernel)
        asked = LineModal(_LABEL_ASKED, make, enter="make it", longest=LONGEST_LABEL)
        self._open(await self.app.push_screen_wait(asked))

    @work(exit_on_error=False)
    async def action_fork(self) -> None:
        if (chosen := self.chosen) is not None:
            self._open(await fork_context(self.kernel, chosen))

    @work(exit_on_error=False)
    async def action_rename(self) -> None:
        if (chosen := self._chosen) is None:
            return
        rename, label = partial(rename_context, self.kernel, chosen.id), chosen.label
        await self.app.push_screen_wait(
            LineModal(_LABEL_ASKED, rename, enter="rename", longest=LONGEST_LABEL, value=label)
        )
        await self._refresh()

    @work(exit_on_error=False)
    async def action_archive(self) -> None:
        if (chosen := self._chosen) is not None:
            params = {"context": chosen.id, "archived": not chosen.is_archived}
            if await self.kernel.call("context.archive", params, "Not archived") is not None:
                done = "is back" if chosen.is_archived else "is archived; z shows archived ones"
                self.notify_person(f"{chosen.label} {done}.")
            await self._refresh()

    def action_archived(self) -> None:
        self._shows_archived = not self._shows_archived
        shown = "shown" if self._shows_archived else "left out"
        self.notify_person(f"Archived contexts are {shown}.")
        self.refresh_entries()


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A person or a program that the kernel knows; once a session, if a host has let it in."""

    principal: str
    name: str
    role: str
    via: str = ""
    """Way by which it is here; empty if it is away."""
    since: str = ""
    """ISO 8601, UTC; empty if it is away."""
    barred_until: str = ""
    """Time until which it is kept out; empty if it is not."""
    session: str = ""
    """Id of the session at a host that this is; empty if it is every connection."""

    @property
    def key(self) -> str:
        """By which it is told from others."""
        return self.session or self.principal

    @classmethod
    def all_of(cls, told: Mapping[str, Any]) -> Iterator[KnownMember]:
        """Return a member as `kernel.members` tells of it, once for each session at a host.

        The kernel itself is nobody.
        """
        if told["kind"] == PrincipalKind.SYSTEM:
            return
        plain = cls(
            told["principal"],
            displayable_in_a_row(told["username"]),
            told["role"],
            barred_until=told.get("barred_until", ""),
        )
        others = [one for one in told["sessions"] if one["via"] not in _HOSTED]
        hosted = [one for one in told["sessions"] if one["via"] in _HOSTED and "within" not in one]
        for one in hosted:
            yield replace(plain, via=one["via"], since=one["since"], session=one["session"])
        if others:
            first = min(others, key=lambda one: one["since"])
            yield replace(plain, via=first["via"], since=first["since"])
        elif not hosted:
            yield plain


class PeoplePanel(Panel):
    """Everybody whom the kernel knows: who is here, since when, and with which role.

    Below them owners see the SSH keys that let somebody in.
    """

    heading = "People"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f,enter", "follow", "follow"),
        Binding("i", "invite('editor')", "invite an editor"),
        Binding("I", "invite('viewer')", "invite a viewer"),
        Binding("e", "role('editor')", "make editor"),
        Binding("v", "role('viewer')", "make viewer"),
        Binding("o", "role('owner')", "make owner"),
        Binding("d", "end", "end the session"),
        Binding("x", "kick", "kick, revoke a key"),
    ]

    def __init__(self, scope: ActionScope, following: Following) -> None:
        super().__init__(scope.session)
        self._scope = scope
        self._source = scope.source
        self._following = following
        self._members: Sequence[KnownMember] = ()
        self._keys: Sequence[Mapping[str, str]] = ()
        """SSH keys that let somebody in, as `key.list` tells of them."""

    async def fetch(self) -> None:
        """Ask for people and programs, of which those who are here come first, and for keys."""
        found = await self.kernel.call("kernel.members", {}, "The people cannot be listed")
        told = [] if found is None else found["members"]
        people = (one for each in told for one in KnownMember.all_of(each))
        members = sorted(people, key=lambda one: (not one.since, one.name, one.since))
        keys = []
        if AccessRole.OWNER in {one.role for one in members if one.principal == self._source.me}:
            found = await self.kernel.call("key.list", {}, "The keys cannot be listed")
            listed = [] if found is None else found["keys"]
            keys = [one for one in listed if one["state"] == "good"]
        self._members, self._keys = members, keys
        self.ids = [*(one.key for one in members), *(one["fingerprint"] for one in keys)]

    def head_rows(self, index: int, theme: CellTheme) -> list[list[StatusSpan]]:
        is_first_key = index == len(self._members)
        return [[], [StatusSpan("SSH keys", theme.heading_2)], []] if is_first_key else []

    def entry_rows(self, index: int, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        if index >= len(self._members):
            key = self._keys[index - len(self._members)]
            name = f"  {displayable_in_a_row(key['username'])}".ljust(20)
            added = f"  added {format_absolute(key['added'])}"
            return [
                [StatusSpan(name, theme.text), StatusSpan(added, theme.dim)],
                [StatusSpan(f"    {key['fingerprint']}", theme.dim)],
            ]
        one = self._members[index]
        style = theme.author(self._source.name(one.principal)[1])
        you = " (you)" if one.principal == self._source.me else ""
        who = StatusSpan(f"{'●' if one.since else '○'} {one.name}{you}".ljust(20), style)
        if one.barred_until:
            stands = f"kicked, may come again {format_absolute(one.barred_until)}"
        elif one.since:
            how = _WAYS.get(one.via, "")
            stands = f"here{how} since {format_absolute(one.since)}"
        else:
            stands = "away"
        role = StatusSpan(f" {one.role}".ljust(9), theme.text)
        if cell_len(who.text + role.text + stands) > width:
            return [[who, role], [StatusSpan(f"  {stands}", theme.dim)]]
        return [[who, role, StatusSpan(stands, theme.dim)]]

    @property
    def _chosen_key(self) -> Mapping[str, str] | None:
        chosen = self.chosen
        return next((one for one in self._keys if one["fingerprint"] == chosen), None)

    def _chosen_member(self) -> KnownMember | None:
        """Return the chosen person or program; None if it is a key, which is said then."""
        if self._chosen_key is not None:
            self.notify_person("This is a key: x revokes it.")
        chosen = self.chosen
        return next((one for one in self._members if one.key == chosen), None)

    def action_follow(self) -> None:
        if (chosen := self._chosen_member()) is None:
            return
        if any(one.principal == chosen.principal for one in self._following.others()):
            self._scope.host.follow(chosen.principal)
            self.dismiss(None)
        else:
            self.notify_person(f"{chosen.name} is in no cell of this context.")

    @work(exit_on_error=False)
    async def action_invite(self, role: str) -> None:
        made = await self.kernel.call("kernel.invite", {"role": role}, "Not invited")
        if made is not None:
            line = str(made.get("join") or made["token"])
            await self._scope.copy(line)
            self.notify_person(f"Copied. For a day this line lets people in as {role}s: {line}")

    @work(exit_on_error=False)
    async def action_role(self, role: str) -> None:
        chosen = self._chosen_member()
        if chosen is None:
            return
        if chosen.role == role:
            self.notify_person(f"{chosen.name} is {AccessRole(role).described()} already.")
            return
        if AccessRole(role) is AccessRole.OWNER:
            question = f"Make {chosen.name} an owner, who may do everything that you may?"
            if not await self.app.push_screen_wait(ConfirmModal(question)):
                return
        params = {"principal": chosen.principal, "role": role}
        if await self.kernel.call("kernel.role", params, "Not changed") is not None:
            self.notify_person(f"{chosen.name} is {AccessRole(role).described()} now.")
        await self._refresh()

    @work(exit_on_error=False)
    async def action_end(self) -> None:
        chosen = self._chosen_member()
        if chosen is None:
            return
        if not chosen.since:
            self.notify_person(f"{chosen.name} is not here.")
            return
        what = "this session" if chosen.session else "every connection"
        tool, params = "kernel.kick", {"principal": chosen.principal, "minutes": 0}
        if chosen.session:
            tool, params = "session.end", {"session": chosen.session}

        async def end(reason: str) -> Mapping[str, Any] | None:
            return await self.kernel.call(tool, {**params, "reason": reason}, "Not ended")

        asked = f"Why? {chosen.name} reads it."
        if await self.app.push_screen_wait(
            LineModal(asked, end, enter=f"end {what}", longest=LONGEST_WHY)
        ):
            self.notify_person(f"Ended {what} of {chosen.name}, who may come again.")
        await self._refresh()
        self.choose_id(chosen.principal)
        self._page.reload()

    @work(exit_on_error=False)
    async def action_kick(self) -> None:
        if (key := self._chosen_key) is not None:
            owner = displayable_in_a_row(key["username"])
            question = f"Revoke the key of {owner}, and end every connection that came in by it?"
            tool, params, failed = "key.revoke", {"fingerprint": key["fingerprint"]}, "Not revoked"
            done = f"Revoked: the key of {owner} lets nobody in any more."
        elif (chosen := self._chosen_member()) is not None:
            question = f"End every connection of {chosen.name}, and keep it out for ten minutes?"
            tool, params, failed = "kernel.kick", {"principal": chosen.principal}, "Not kicked"
            done = f"{chosen.name} is out."
        else:
            return
        if not await self.app.push_screen_wait(ConfirmModal(question)):
            return
        if await self.kernel.call(tool, params, failed) is not None:
            self.notify_person(done)
        await self._refresh()
