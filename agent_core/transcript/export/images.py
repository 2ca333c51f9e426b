"""Pictures inside an exported document: only of known types, only with what is really base64."""

import re

MIMES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""Image types that every browser shows and none executes: SVG is not among them."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def data_uri(mime: str, data: str) -> str | None:
    """Return a picture as a URI; None when it is of another type, or no base64."""
    kind = mime.strip().lower()
    if kind not in MIMES or _BASE64.fullmatch(data) is None:
        return None
    return f"data:{kind};base64,{data}"
