"""Has the older part of a conversation summarised in its own way: by a model of choice, as a list of decisions."""

from agent_core.extensions import Context, ExtensionApi
from agent_core.hooks import Compacting, CompactionOutcome, GoOn, SummaryGiven
from agent_core.kernel.errors import ModelUnknown, ProviderError
from agent_core.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage

MOST_CHARS = 2_000
"""Of one message."""
MAX_TOKENS = 2_000
SYSTEM = "You write notes for a colleague who goes on with this work and sees nothing but them."
ASKED = """Write down: what was wanted, what was decided and why, which files matter, and what comes next.

<conversation>
{conversation}
</conversation>"""


def extension(api: ExtensionApi) -> None:
    """Register it."""
    api.flag("compaction-model", kind="string", description="Which model summarises")

    @api.on(Compacting)
    async def summarise(event: Compacting, ctx: Context) -> CompactionOutcome:
        chosen = api.get_flag("compaction-model")
        said = "\n\n".join(filter(None, map(words, event.messages)))
        if event.previous_summary:
            said = f"Notes so far:\n{event.previous_summary}\n\n{said}"
        try:
            answer = await ctx.complete(
                ASKED.format(conversation=said),
                system=SYSTEM,
                model=chosen if isinstance(chosen, str) else None,
                max_tokens=MAX_TOKENS,
            )
        except (ModelUnknown, ProviderError) as error:
            ctx.ui.notify(
                f"The notes were not written, so the usual summary is: {error}", "warning"
            )
            return GoOn()
        return SummaryGiven(summary=answer.text) if answer.text.strip() else GoOn()


def words(message: Message) -> str:
    """Give what somebody said, in a few words."""
    match message:
        case UserMessage():
            who = "User"
        case AssistantMessage():
            who = "Assistant"
        case ToolResultMessage():
            who = f"Result of {message.tool_name}"
        case _:
            return ""
    text = "\n".join(part.text for part in message.content if isinstance(part, Text))
    return f"{who}: {text[:MOST_CHARS]}" if text else ""
