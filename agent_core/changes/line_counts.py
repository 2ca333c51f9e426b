"""Changes as numbers; pure."""

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value


class LineCounts(Value, frozen=True, kw_only=True):
    """Files, lines and hunks."""

    files: int = 0
    additions: int = 0
    deletions: int = 0
    unreviewed: int = 0

    def plus(self, other: "LineCounts", *, times: int = 1) -> "LineCounts":
        """Add, or with -1 take away."""
        return LineCounts(
            files=self.files + times * other.files,
            additions=self.additions + times * other.additions,
            deletions=self.deletions + times * other.deletions,
            unreviewed=self.unreviewed + times * other.unreviewed,
        )


def line_count(text: str) -> int:
    """Count lines as patches do; a last one without an end is one."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def encode_counts(counts: LineCounts) -> dict[str, JsonValue]:
    """Write what waits in a file, as the entries of the session's file carry it."""
    return {
        "files": counts.files,
        "additions": counts.additions,
        "deletions": counts.deletions,
        "unreviewed": counts.unreviewed,
    }


def counts_in(data: JsonObject) -> LineCounts | None:
    """Read what an entry says; None: it says nothing that makes sense."""
    counts = as_object(data.get("counts"))
    numbers = [counts.get(name) for name in ("files", "additions", "deletions", "unreviewed")]
    match numbers:
        case [int(files), int(additions), int(deletions), int(unreviewed)] if (
            min(files, additions, deletions, unreviewed) >= 0
        ):
            return LineCounts(
                files=files, additions=additions, deletions=deletions, unreviewed=unreviewed
            )
        case _:
            return None
