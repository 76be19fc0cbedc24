"""The end of a text by the id of its last item, to write behind it without looking for it.

The engine finds an index by going through the items of a text from the first one on. A text that
was streamed while others were too is one item for each append: what the same client writes
elsewhere in between keeps them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon_kernel.document.block_text import RUN_BYTES
from antiphon_kernel.yjs.update import ContentKind, DecodedUpdate, ItemId
from antiphon_kernel.yjs.update_writer import encode_text_item
from antiphon_kernel.yjs.utf16 import utf16_length


@dataclass(frozen=True, slots=True)
class TextTail:
    """The end of a text as this client has left it; of no use once anybody else writes there."""

    last: ItemId
    """The last character."""
    right: ItemId | None
    """The format mark behind it."""
    run: int
    """Number of the run of bytes that it is in; the next one has another format."""
    size: int
    """UTF-8 bytes of the text."""

    @classmethod
    def of(cls, written: DecodedUpdate, client: int, begin: int, text: str) -> TextTail | None:
        """Return the end of a text that an update of this client has just written at.

        None if the update has done anything else in a text.

        Args:
            begin: bytes of the text before.
            text: what was written there.
        """
        structs = written.structs
        if written.deletions or any(one.client != client for one in structs):
            return None
        found = [at for at, one in enumerate(structs) if one.kind is ContentKind.STRING]
        if len(found) != 1 or structs[found[0]].content != text:
            return None
        item = structs[found[0]]
        last = ItemId(client, item.clock + item.length - 1)
        right = item.right_origin
        for mark in structs[found[0] + 1 :]:
            if mark.kind is not ContentKind.FORMAT or mark.origin != last:
                return None
            right = ItemId(client, mark.clock)
            break
        return cls(last, right, begin // RUN_BYTES, begin + len(text.encode()))

    @property
    def goes_on(self) -> bool:
        """Whether what comes next has the same format."""
        return self.size // RUN_BYTES == self.run

    def append(self, text: str, clock: int) -> tuple[bytes, TextTail]:
        """Return the update that writes text behind it, at a clock of the client, and its end."""
        client, data = self.last.client, text.encode()
        length = len(text) if len(data) == len(text) else utf16_length(text)
        update = encode_text_item(client, clock, self.last, self.right, data)
        last = ItemId(client, clock + length - 1)
        return update, TextTail(last, self.right, self.run, self.size + len(data))
