"""Rejected findings in the memory of a project."""

from collections.abc import Sequence
from typing import Final

from agent_core.memory.access import FolderMemory
from agent_core.memory.values import MemoryEntry, one_of
from tiller_server.review.findings.rejections import RejectedFinding
from tiller_server.review.findings.result import CATEGORIES

KIND: Final = "rejected-finding"


async def read_rejections(
    memory: FolderMemory,
) -> tuple[tuple[RejectedFinding, ...], Sequence[object]]:
    """Return the findings that were rejected in a project, and the problems of its file."""
    file = await memory.store.read(memory.project.scope)
    today = memory.store.today
    current = (entry for entry in file.entries if not entry.is_expired(today))
    return tuple(one for entry in current if (one := _rejected(entry)) is not None), file.problems


def _rejected(entry: MemoryEntry) -> RejectedFinding | None:
    fields = entry.fields
    category = one_of(CATEGORIES, fields.get("rule"))
    if entry.kind != KIND or category is None:
        return None
    return RejectedFinding(
        fingerprint=fields.get("fingerprint", ""),
        path=fields.get("file", ""),
        category=category,
        sketch=fields.get("sketch", ""),
    )
