"""The first frame of a fresh process: the libraries it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

LIBRARIES: Final = {
    "annotated_types",
    "anyio",
    "platformdirs",
    "pycrdt",
    "pydantic",
    "pydantic_core",
    "rich",
    "sniffio",
    "textual",
    "typing_extensions",
    "typing_inspection",
    "websockets",
}
"""A new name here is time that everybody waits for: import what is needed later when it is."""

START: Final = """
import gc, sys
from pathlib import Path
gc.disable()
from antiphon.app import AntiphonApp
from antiphon.options import AppOptions

class Started(AntiphonApp):
    def _first_frame_drawn(self):
        own = ("antiphon", "antiphon_kernel", "_", "__main__")
        loaded = {name.partition(".")[0] for name in list(sys.modules)}
        loaded -= sys.stdlib_module_names
        found = sorted(name for name in loaded if name not in own and not name.startswith("_"))
        super()._first_frame_drawn()
        self.exit(" ".join([str(gc.isenabled()), *found]))

print(Started(AppOptions(data=Path(sys.argv[1]))).run(headless=True))
"""


def test_first_frame_needs_no_other_libraries_and_collection_begins_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )
    collects, *loaded = done.stdout.split()
    assert set(loaded) <= LIBRARIES
    assert collects == "True"
