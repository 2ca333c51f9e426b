"""Shared parts of the file tools: aliases of the path argument, and paths in titles."""

from collections.abc import Mapping

from agent_core.kernel import JsonObject

PATH_NAMES: Mapping[str, str] = {"file_path": "path", "filePath": "path", "filename": "path"}
"""Aliases of the path argument, from the tools of other agents that models remember."""


def path_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return path if isinstance(path, str) and path.strip() else "?"
