"""The loop of a run: a model call, a batch of tool calls, a turn, turns until nothing is left."""

from agent_core.loop.port import (
    BeforeTurn,
    Demand,
    Inbox,
    Intake,
    Items,
    Loop,
    Recording,
    TurnCount,
    Words,
)
from agent_core.loop.turns import run_turns, say, tell_words

__all__ = [
    "BeforeTurn",
    "Demand",
    "Inbox",
    "Intake",
    "Items",
    "Loop",
    "Recording",
    "TurnCount",
    "Words",
    "run_turns",
    "say",
    "tell_words",
]
