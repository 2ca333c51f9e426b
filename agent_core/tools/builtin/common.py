"""What the file tools share: other names for the path, and paths in titles."""

from collections.abc import Mapping

from agent_core.kernel import JsonObject

PATH_NAMES: Mapping[str, str] = {"file_path": "path", "filePath": "path", "filename": "path"}
"""What models call the path when they remember another agent's tools."""


def path_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return path if isinstance(path, str) and path.strip() else "?"
