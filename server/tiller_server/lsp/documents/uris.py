"""URIs of files to paths; stdlib only, for it is needed before anything else is loaded."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> Path | None:
    """Return the path of a `file:` URI; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as an unclosed bracket in the place of the host
        return None
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = unquote(parts.path)
    # file:///c%3A/x names c:/x on Windows.
    if len(path) > 2 and path[0] == "/" and path[2] == ":" and path[1].isalpha():  # noqa: PLR2004 - "/c:"
        path = path[1:]
    return Path(path) if path else None
