"""Hook calls for a changed model or thinking level."""

from agent_core.events import ThinkingLevel
from agent_core.hooks import Hooks, ModelSelected, ThinkingSelected
from agent_core.hooks.session_points import ModelSelectionSource
from agent_core.kernel.values import Value
from agent_core.session.model_selection import ModelSelection


class SelectedModel(Value, frozen=True, kw_only=True):
    """A choice, at one moment."""

    model: str | None
    thinking: ThinkingLevel

    @classmethod
    def of(cls, models: ModelSelection) -> "SelectedModel":
        """Return the choice in force."""
        return cls(model=models.ref, thinking=models.thinking)


async def notify_model_change(
    hooks: Hooks, before: SelectedModel, now: SelectedModel, *, source: ModelSelectionSource
) -> None:
    """Call the hooks for a changed model and a changed thinking level; none for what is the same as before."""
    if now.model is not None and now.model != before.model:
        _ = await hooks.ask(ModelSelected(model=now.model, previous=before.model, source=source))
    if now.thinking != before.thinking:
        _ = await hooks.ask(ThinkingSelected(level=now.thinking, previous=before.thinking))
