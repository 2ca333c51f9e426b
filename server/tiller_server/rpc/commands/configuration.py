"""Commands about the model, thinking, and the modes of a session."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.providers.messages.request_options import LEVELS
from tiller_server.rpc.commands.context import (
    Handler,
    RpcContext,
    choice_field,
    flag_field,
    rows,
    text_field,
)
from tiller_server.rpc.records import model_record

QUEUE_MODES: Final = ("all", "one-at-a-time")


async def set_model(context: RpcContext, command: JsonObject) -> JsonObject:
    """Use another model."""
    ref = f"{text_field(command, 'provider')}/{text_field(command, 'modelId')}"
    if all(one.get("model") != ref for one in await context.list_models()):
        message = f"Model not found: {ref}"
        raise UsageError(message)
    await context.session.configure(model=ref)
    return {"data": await context.model(ref)}


async def cycle_model(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Use the next model."""
    chosen = await context.session.request("agent/model/cycle", direction=1)
    ref = chosen.get("model")
    if not isinstance(ref, str):
        return {"data": None}
    _set(context, model=ref, thinking=chosen.get("thinking"))
    scoped = await context.session.request("agent/model/list", scope="scoped")
    is_scoped = len(rows(scoped.get("models"))) < len(await context.list_models())
    model, level = await context.model(ref), chosen.get("thinking")
    return {"data": {"model": model, "thinkingLevel": level, "isScoped": is_scoped}}


async def get_available_models(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the models that can be used."""
    return {"data": {"models": [model_record(one) for one in await context.list_models()]}}


async def set_thinking_level(context: RpcContext, command: JsonObject) -> JsonObject:
    """Use another thinking level."""
    await context.session.configure(thinking=choice_field(command, "level", LEVELS))
    return {}


async def cycle_thinking_level(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Use the next thinking level of the model."""
    level = (await context.session.request("agent/thinking/cycle")).get("level")
    if level is None:
        return {"data": None}
    _set(context, thinking=level)
    return {"data": {"level": level}}


def _set(context: RpcContext, **changed: JsonValue) -> None:
    """Note a change whose event comes after the response."""
    context.session.state.config = replace(context.session.state.config, **changed)


async def get_available_thinking_levels(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the thinking levels of the model."""
    levels: list[JsonValue] = [*await context.thinking_levels()]
    return {"data": {"levels": levels}}


async def set_steering_mode(context: RpcContext, command: JsonObject) -> JsonObject:
    """Choose how waiting steering messages are delivered."""
    await context.session.configure(steering=choice_field(command, "mode", QUEUE_MODES))
    return {}


async def set_follow_up_mode(context: RpcContext, command: JsonObject) -> JsonObject:
    """Choose how waiting follow-up messages are delivered."""
    await context.session.configure(followUp=choice_field(command, "mode", QUEUE_MODES))
    return {}


async def set_auto_compaction(context: RpcContext, command: JsonObject) -> JsonObject:
    """Turn automatic compaction on or off."""
    await context.session.configure(autoCompact=flag_field(command, "enabled"))
    return {}


HANDLERS: Final[Mapping[str, Handler]] = {
    "set_model": set_model,
    "cycle_model": cycle_model,
    "get_available_models": get_available_models,
    "set_thinking_level": set_thinking_level,
    "cycle_thinking_level": cycle_thinking_level,
    "get_available_thinking_levels": get_available_thinking_levels,
    "set_steering_mode": set_steering_mode,
    "set_follow_up_mode": set_follow_up_mode,
    "set_auto_compaction": set_auto_compaction,
}
