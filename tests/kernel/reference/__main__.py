"""`make docs`: writes the generated pages under docs/.

python -m tests.kernel.reference
"""

from __future__ import annotations

import asyncio
import sys

from tests.app.cli.man_page import MAN_PAGE, man_page
from tests.kernel.reference.pages import DOCS, all_pages, stale_pages

(DOCS / "tools").mkdir(exist_ok=True)
failures: list[str] = []
for path, text in asyncio.run(all_pages(failures)).items():
    (DOCS / path).write_text(text, "utf-8")
MAN_PAGE.write_text(man_page(), "utf-8")
for path in stale_pages():
    (DOCS / path).unlink()
if failures:
    sys.exit("\n".join(failures))
