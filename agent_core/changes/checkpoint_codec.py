"""Checkpoints as JSON, as the session's file holds them; pure."""

from agent_core.changes.values import Checkpoint
from agent_core.kernel import EntryId, JsonObject, JsonValue, RunId


def encode_checkpoint(one: Checkpoint) -> dict[str, JsonValue]:
    """Encode a checkpoint as JSON; fields that are None are left out."""
    fields: dict[str, JsonValue] = {
        "checkpoint": one.id,
        "run": one.run,
        "at": one.at_ms,
        "changes": one.changes,
        "leaf": one.leaf,
        "restores": one.restores,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_checkpoint(data: JsonObject, *, changes: int) -> Checkpoint | None:
    """Decode a checkpoint; None: the data is not a valid checkpoint.

    Args:
        data: The encoded checkpoint.
        changes: Number of changes read before it. The number in the file is only informative: after damage to a line
            the two differ, and a change that cannot be read cannot be reverted.
    """
    checkpoint, run, at_ms, leaf = (data.get(name) for name in ("checkpoint", "run", "at", "leaf"))
    restores = data.get("restores")
    if not isinstance(checkpoint, str):
        return None
    return Checkpoint(
        id=checkpoint,
        run=RunId(run) if isinstance(run, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
        changes=changes,
        leaf=EntryId(leaf) if isinstance(leaf, str) else None,
        restores=restores if isinstance(restores, str) else None,
    )
