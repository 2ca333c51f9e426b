"""Sessions with branches, for tests."""

from collections.abc import Sequence

from agent_core.kernel import EntryId, SessionId
from agent_core.messages import Usage
from agent_core.session.history.entries import TreeNode
from agent_core.storage import OpenedSession
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.session.scripted_model import (
    ScriptedModel,
    Turn,
    say,
)
from tests.support.session.sessions import Bench, words


def talk(*more: Turn) -> ScriptedModel:
    """A model that answers three prompts, and then what a test wants."""
    return ScriptedModel([say("a1"), say("a2"), say("a3"), *more])


async def talked(b: Bench, *prompts: str) -> None:
    for one in prompts or ("u1", "u2", "u3"):
        await b.session.prompt(one)
        await b.idle()


def node(b: Bench, preview: str) -> EntryId:
    """Give the entry that begins so."""
    (found,) = [one.entry for one in b.session.tree.nodes() if one.preview == preview]
    return found


def shown(nodes: Sequence[TreeNode]) -> dict[str, str | None]:
    """Give what stands below what."""
    names = {one.entry: one.preview for one in nodes}
    return {one.preview: None if one.parent is None else names[one.parent] for one in nodes}


def context(b: Bench) -> list[str]:
    return [words(message) for message in b.messages]


async def reopened(store: MemoryStore, session: SessionId | None) -> OpenedSession:
    assert session is not None
    return await store.open(session)


SUMMARY = say("## Goal\ntry it", usage=Usage(input=50, output=5))
