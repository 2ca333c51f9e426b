"""Keeps what the user said about workspaces in `trust.json`, for their eyes only. Blocking."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from agent_core.kernel import JsonObject, JsonValue, rfc3339
from agent_core.kernel.json import is_object
from agent_core.kernel.values import Value
from agent_core.resources.trust.decision_file import DecisionFile, texts_of
from agent_core.resources.trust.evidence import TrustEvidence

TrustChoice = Literal["trusted", "refused"]


class StoredTrustDecision(Value, frozen=True, kw_only=True):
    """The user's decision on a workspace, and the files that they saw then."""

    said: TrustChoice
    at: str
    """RFC 3339."""
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    texts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Small files as they were, to show what has changed."""


class TrustStore:
    """The words about all workspaces of a user."""

    def __init__(self, path: Path) -> None:
        self._file = DecisionFile(path, section="folders", else_="no workspace is trusted")

    def decision(self, root: Path) -> StoredTrustDecision | None:
        """Return the decision on a workspace; None if there is none.

        Raises:
            ConfigError: The file cannot be read, so it is unknown which workspaces are trusted and none is.
        """
        return self.decisions().get(str(root))

    def decisions(self) -> Mapping[str, StoredTrustDecision]:
        """Return everything that was said, by folder; an entry that is not understood counts as nothing.

        Raises:
            ConfigError: As `word`.
        """
        read = {name: _word(entry) for name, entry in self._file.entries().items()}
        return {name: word for name, word in read.items() if word is not None}

    def record(self, root: Path, said: TrustChoice, *, seen: TrustEvidence, at_ms: int) -> None:
        """Store a decision of the user; it replaces the earlier decision on the workspace.

        Raises:
            ConfigError: The file cannot be read or written; it is unchanged.
        """
        made: JsonObject = {
            "said": said,
            "at": rfc3339(at_ms),
            "hashes": dict(seen.hashes),
            "texts": {name: one.text for name, one in seen.files.items() if one.text is not None},
        }

        def change(folders: JsonObject) -> JsonObject:
            before = folders.get(str(root))
            return {**folders, str(root): {**before, **made} if is_object(before) else made}

        self._file.change(change)

    def forget(self, root: Path) -> bool:
        """Forget what was said about a workspace; tells whether there was anything.

        Raises:
            ConfigError: As `say`.
        """
        found = False

        def change(folders: JsonObject) -> JsonObject:
            nonlocal found
            found = str(root) in folders
            return {name: entry for name, entry in folders.items() if name != str(root)}

        self._file.change(change)
        return found


def _word(entry: JsonValue) -> StoredTrustDecision | None:
    if not is_object(entry):
        return None
    said, at = entry.get("said"), entry.get("at")
    if said not in {"trusted", "refused"}:
        return None
    return StoredTrustDecision(
        said="trusted" if said == "trusted" else "refused",
        at=at if isinstance(at, str) else "",
        hashes=texts_of(entry.get("hashes")),
        texts=texts_of(entry.get("texts")),
    )
