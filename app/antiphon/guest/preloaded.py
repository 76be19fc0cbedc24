"""Everything that a session needs, imported in the process that is forked for each of them."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Final

from antiphon.guest.confinement import has_socket_filter, landlock_version

_MODULES: Final = (
    "antiphon.app",
    "antiphon.cli.call",
    "antiphon.cli.commands",
    "antiphon.cli.tail",
    "antiphon.guest.session_process",
    "antiphon_kernel.client.transfers",
    "textual.command",
    "textual.drivers.linux_driver",
    "textual.layouts.factory",
    "textual.widgets.input",
    "websockets.asyncio.client",
)

for _name in _MODULES:
    import_module(_name)
if not landlock_version():
    sys.stderr.write("This system has no Landlock: only Python confines sessions.\n")
if not has_socket_filter():
    sys.stderr.write("There is no filter of sockets for this system: only Python keeps them.\n")
gc.collect()
gc.freeze()
