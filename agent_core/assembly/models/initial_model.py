"""Decides which model a session begins with, and how hard it thinks."""

from collections.abc import Callable

from agent_core.events import ThinkingLevel
from agent_core.kernel.errors import ModelUnknown
from agent_core.kernel.values import Value
from agent_core.providers import Model
from agent_core.providers.messages.thinking_level import LEVELS
from agent_core.providers.registry import ChosenModel, ModelRegistry
from agent_core.resources.settings.values import SettingsValues
from agent_core.session.model_selection import Choosable
from agent_core.transcript import ModelContext


class RequestedModel(Value, frozen=True, kw_only=True):
    """Requested model and thinking level of the session's opener; None: not requested."""

    model: str | None
    thinking: ThinkingLevel | None


class InitialModelChoice(Value, frozen=True, kw_only=True):
    """Initial model and thinking level of a session."""

    model: Model | None
    why_no_model: str
    """Error text for prompts sent while there is no model; empty when there is a model."""
    look_again: Callable[[], Model | None]
    """Chooses again while there is no model: a key may have been added since."""
    thinking: ThinkingLevel
    asked_for: frozenset[Choosable]
    """Requested choices that the session file does not hold yet."""
    notices: tuple[str, ...]
    """Notices for the user about the choice, one sentence each."""


def choose_start(
    wishes: RequestedModel,
    *,
    values: SettingsValues,
    registry: ModelRegistry,
    context: ModelContext,
    now: Callable[[], SettingsValues] | None = None,
) -> InitialModelChoice:
    """Choose the request, else the session's earlier choice, else the settings.

    Args:
        wishes: The request.
        values: The settings.
        registry: The models.
        context: Context of the session's current branch, with its earlier choice.
        now: Returns the settings for a later choice; None: they stay the same.

    Raises:
        ModelUnknown: The requested model cannot be used.
    """

    def choose(said: SettingsValues) -> ChosenModel:
        provider, name = said.default_provider, said.default_model
        return registry.choose(
            request=wishes.model,
            session=context.model,
            settings=f"{provider}/{name}" if provider and name else name or None,
            provider=provider or None,
        )

    choice = choose(values)
    model, trouble = _opened(registry, choice)
    thinking = wishes.thinking or choice.thinking
    # Without patterns there is nothing that could be wrong with them.
    problems = registry.scope(values.scoped_models).problems if values.scoped_models else ()
    return InitialModelChoice(
        model=model,
        why_no_model="" if model else trouble,
        look_again=lambda: _opened(registry, choose(values if now is None else now()))[0],
        thinking=thinking or _supported_level(context.thinking) or values.default_thinking_level,
        asked_for=_asked_for(wishes, model=model, thinking=thinking, context=context),
        notices=(*((trouble,) if model and trouble else ()), *problems),
    )


def _asked_for(
    wishes: RequestedModel,
    *,
    model: Model | None,
    thinking: ThinkingLevel | None,
    context: ModelContext,
) -> frozenset[Choosable]:
    asked_for: set[Choosable] = set()
    if wishes.model is not None and model is not None and model.facts.ref != context.model:
        asked_for.add("model")
    if thinking is not None and thinking != context.thinking:
        asked_for.add("thinking")
    return frozenset(asked_for)


def _opened(registry: ModelRegistry, choice: ChosenModel) -> tuple[Model | None, str]:
    message = choice.fallback_message or ""
    if choice.model is None:
        return None, message
    try:
        return registry.open(choice.model), message
    except ModelUnknown as error:
        return None, str(error)


def _supported_level(level: str | None) -> ThinkingLevel | None:
    """A session of a later version may have a level that this one has not."""
    return next((one for one in LEVELS if one == level), None)
