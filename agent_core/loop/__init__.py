"""The loop of a run: a model call, a batch of tool calls, a turn, turns until nothing is left."""

from agent_core.loop.port import (
    BeforeTurn,
    InputHooks,
    LoopContext,
    PendingInput,
    RequestConfig,
    RunningCalls,
    TranscriptPort,
    TurnCount,
    UserInput,
)
from agent_core.loop.turns import notify_input_hooks, publish_input, run_turns

__all__ = [
    "BeforeTurn",
    "InputHooks",
    "LoopContext",
    "PendingInput",
    "RequestConfig",
    "RunningCalls",
    "TranscriptPort",
    "TurnCount",
    "UserInput",
    "notify_input_hooks",
    "publish_input",
    "run_turns",
]
