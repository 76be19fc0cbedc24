"""Files of every kind that can be attached, as bytes."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

PNG: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(17)
PDF: Final = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
FILES: Final = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x04\0\0\0WEBPVP8 ",
    "application/pdf": PDF,
    "text/plain": "Größe\r\n日本 👩‍👧\n".encode(),
}


def sent(name: str, data: bytes, **more: Any) -> dict[str, Any]:
    """Return a file as `block.attach` takes its bytes."""
    return {"name": name, "data": b64encode(data).decode(), **more}
