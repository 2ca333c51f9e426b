"""The tool `plan`: a description of the work, which the user approves before anything is changed."""

import hashlib
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import scrub
from agent_core.kernel.text import one_line
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result

NAME: Final = "plan"
"""Name of the tool, and key of the plan in the details of its results."""
MOST_CHARS: Final = 100_000
MOST_STEPS: Final = 50
STEP_CHARS: Final = 200
TITLE_CHARS: Final = 80

PlanReview = Literal["off", "complex", "always"]
WHEN: Final[Mapping[PlanReview, str]] = {
    "off": "",
    "complex": "Use it for work that has several steps or a choice that the user should know of.",
    "always": "Every piece of work ends with it.",
}
"""Part of the description of the tool, by the setting."""


class PlanArguments(ToolArguments):
    """Arguments of `plan`."""

    other_names: ClassVar[Mapping[str, str]] = {"plan": "markdown", "text": "markdown"}

    markdown: str = Field(
        description="The whole plan as Markdown: the goal, what is changed where and why, risks, how it is tested"
    )
    steps: list[str] = Field(
        default=[], description=f"The steps in order, a line each, at most {MOST_STEPS}"
    )


class PlanTool(ModelTool[PlanArguments], frozen=True, kw_only=True):
    """The tool `plan`, which models see in the mode in which nothing may be changed."""

    is_planning: Callable[[], bool]

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return self.is_planning()


def plan_tool(is_planning: Callable[[], bool], *, review: PlanReview = "complex") -> PlanTool:
    """Make the tool.

    Args:
        is_planning: Whether the session is in the mode `plan` at present.
        review: When plans are asked for.
    """
    return PlanTool(
        spec=ToolSpec(
            name=NAME,
            description=(
                "Show the user a plan for approval. Nothing may be changed in this mode: look around with the other tools, "
                "ask what only the user can decide, then call this once with the whole plan and end your turn. "
                f"{WHEN[review]}"
            ),
            parameters=schema_of(PlanArguments),
            kind="read",
            snippet="Show a plan for approval",
        ),
        arguments=PlanArguments,
        titled=_title,
        execute=_plan,
        is_planning=is_planning,
    )


def plan_hash(markdown: str) -> str:
    """Return the SHA-256 of the text of a plan, in hex."""
    return hashlib.sha256(markdown.encode("utf-8", "surrogatepass")).hexdigest()


def _title(arguments: JsonObject) -> str:
    text = arguments.get("markdown")
    lines = text.strip().splitlines() if isinstance(text, str) else []
    first = one_line(lines[0].lstrip("# ")) if lines else ""
    return f"plan: {first[:TITLE_CHARS]}" if first else "plan"


async def _plan(arguments: PlanArguments, _: ToolContext) -> ToolResult:
    markdown = scrub(arguments.markdown).strip()
    if not markdown:
        message = "The plan has no text: write the whole plan as Markdown."
        raise ToolError(message)
    if len(markdown) > MOST_CHARS or len(arguments.steps) > MOST_STEPS:
        message = f"The plan is too long: at most {MOST_CHARS} characters and {MOST_STEPS} steps. Write what the user must know."
        raise ToolError(message)
    steps: list[JsonValue] = [
        {"text": one_line(scrub(step))[:STEP_CHARS], "status": "pending"}
        for step in arguments.steps
        if step.strip()
    ]
    text = (
        "The user sees the plan and approves it, asks for changes or rejects it. Nothing is "
        "approved yet: end your turn now, with at most one sentence."
    )
    return text_result(
        text, details={NAME: {"markdown": markdown, "steps": steps, "sha256": plan_hash(markdown)}}
    )
