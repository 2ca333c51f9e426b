"""System prompts for tests, written whole."""

from typing import Any

from agent_core.resources.instructions.system_prompt import prompt_sections, written


def build_system_prompt(**given: Any) -> str:
    """Write one, of what `prompt_sections` takes."""
    return written(prompt_sections(**given))
