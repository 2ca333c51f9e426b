"""System prompts for tests, written whole."""

from typing import Any

from agent_core.resources.instructions import prompt_sections, render_prompt


def build_system_prompt(**given: Any) -> str:
    """Write one, of what `prompt_sections` takes."""
    return render_prompt(prompt_sections(**given))
