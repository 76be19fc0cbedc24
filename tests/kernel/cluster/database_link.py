"""A connection to a database that tests cut, or hold up."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.kernel.served import CuttableProxy


class DatabaseLink(CuttableProxy):
    """A relay on loopback in front of a server, once it is started."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        assert self._parts.port is not None
        super().__init__(self._parts.port)

    @property
    def url(self) -> str:
        """The URL of the database behind it."""
        before = self._parts.netloc.rpartition(":")[0]
        return self._parts._replace(netloc=f"{before}:{self.port}").geturl()
