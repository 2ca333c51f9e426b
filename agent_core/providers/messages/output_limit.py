"""How many tokens an answer may ask for, so that input and output fit the window together."""

import math
from collections.abc import Sequence

from agent_core.kernel import json
from agent_core.messages import Image, ToolCall
from agent_core.providers.messages.normalisation import TurnMessage
from agent_core.providers.model import ModelInfo, ModelRequest

CHARS_PER_TOKEN = 3.5
"""Deliberately fewer than the usual four: code and CJK are denser."""
IMAGE_TOKENS = 1_200
SPARE_TOKENS = 4_096
SPARE_SHARE = 0.15
SMALL_WINDOW_SHARE = 4
"""The fixed margin is never more than this part of the window."""
USUAL_OUTPUT = 32_768


def output_limit(request: ModelRequest, turns: Sequence[TurnMessage], model: ModelInfo) -> int:
    """Return the output limit to send: the requested one, at most the model's and the room that the input leaves."""
    wanted = model.max_tokens
    if request.max_tokens is not None:
        wanted = min(request.max_tokens, model.max_tokens)
    if model.context_window <= 0:
        return max(wanted, 1)
    tokens = estimate_input(request, turns)
    return clamp_output(wanted, context_window=model.context_window, input_tokens=tokens)


def clamp_output(wanted: int, *, context_window: int, input_tokens: int) -> int:
    """Keep the output inside the window, with a margin for the error of the estimate; at least 1."""
    fixed = min(SPARE_TOKENS, context_window // SMALL_WINDOW_SHARE)
    room = context_window - input_tokens - max(fixed, math.ceil(input_tokens * SPARE_SHARE))
    if room < USUAL_OUTPUT:
        room = min(USUAL_OUTPUT, context_window - input_tokens - fixed)
    return max(1, min(wanted, room))


def estimate_input(request: ModelRequest, turns: Sequence[TurnMessage]) -> int:
    """Estimate the tokens of a request from its characters."""
    chars = len(request.system)
    images = 0
    for tool in request.tools:
        chars += len(tool.name) + len(tool.description) + len(json.encode(tool.parameters))
    for turn in turns:
        for part in turn.content:
            if isinstance(part, Image):
                images += 1
            elif isinstance(part, ToolCall):
                chars += len(part.name) + len(json.encode(part.arguments))
            else:
                chars += len(part.text)
    return math.ceil(chars / CHARS_PER_TOKEN) + images * IMAGE_TOKENS
