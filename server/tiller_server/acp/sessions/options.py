"""Modes and configuration options of a session, from one state. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from agent_core.events import PermissionMode, SessionConfig
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.values import Value
from tiller_server.acp.errors import INVALID_PARAMS, AcpError

MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)
MODE_TEXTS: Final[Mapping[PermissionMode, tuple[str, str]]] = {
    "plan": ("Plan", "Only reads."),
    "ask": ("Ask", "Asks before it changes files or runs commands."),
    "auto": ("Auto", "Changes files of the workspace and runs contained commands without a question."),
    "yolo": ("Yolo", "Asks for nothing that a rule does not forbid."),
}  # fmt: skip
SELECTS: Final[Mapping[str, str]] = {"mode": "mode", "model": "model", "thinking": "thinking"}
"""Fields of the configuration, by the id of the select option that sets them."""
AUTO_COMPACT: Final = "autoCompact"


class ModelOption(Value, frozen=True, kw_only=True):
    """A model that can be chosen."""

    id: str
    name: str
    thinking: tuple[str, ...]


def model_options(result: JsonValue) -> tuple[ModelOption, ...]:
    """Return the models in a result of `agent/model/list`."""
    rows = as_object(result).get("models")
    return tuple(
        _model(row)
        for row in (rows if isinstance(rows, list) else [])
        if is_object(row) and row.get("model")
    )


def _model(row: JsonObject) -> ModelOption:
    identity, levels = as_text(row.get("model")), row.get("thinking")
    return ModelOption(
        id=identity,
        name=as_text(row.get("name")) or identity,
        thinking=tuple(as_text(level) for level in (levels if isinstance(levels, list) else [])),
    )


def modes(config: SessionConfig) -> JsonObject:
    """Return the modes of a session."""
    listed: list[JsonValue] = [
        {"id": mode, "name": MODE_TEXTS[mode][0], "description": MODE_TEXTS[mode][1]}
        for mode in MODES
    ]
    return {"currentModeId": config.mode, "availableModes": listed}


def config_options(
    config: SessionConfig, models: Sequence[ModelOption], *, with_booleans: bool
) -> list[JsonValue]:
    """Return the options of a session, most important first.

    Args:
        config: Configuration in force.
        models: Models that can be chosen.
        with_booleans: Whether the client shows options with yes and no.
    """
    current = next((one for one in models if one.id == config.model), None)
    mode_rows = [(mode, MODE_TEXTS[mode][0], MODE_TEXTS[mode][1]) for mode in MODES]
    options: list[JsonValue] = [_select("mode", "Mode", "mode", config.mode, mode_rows)]
    if config.model is not None:
        rows = [(one.id, one.name, "") for one in models]
        if current is None:
            rows.insert(0, (config.model, config.model, ""))
        options.append(_select("model", "Model", "model", config.model, rows))
    levels = current.thinking if current is not None else ()
    if len(levels) > 1 and config.thinking in levels:
        rows = [(level, level.capitalize(), "") for level in levels]
        options.append(_select("thinking", "Thinking", "thought_level", config.thinking, rows))
    if with_booleans:
        options.append(
            {
                "id": AUTO_COMPACT,
                "name": "Compact automatically",
                "type": "boolean",
                "currentValue": config.auto_compact,
            }
        )
    return options


def option_change(params: JsonObject) -> JsonObject:
    """Return the change of the configuration that `session/set_config_option` asks for.

    Raises:
        AcpError: There is no such option, or the value has the wrong type.
    """
    option, value = params.get("configId"), params.get("value")
    if option == AUTO_COMPACT and isinstance(value, bool):
        return {AUTO_COMPACT: value}
    field = SELECTS.get(option) if isinstance(option, str) else None
    if field is None:
        message = f"session/set_config_option: there is no option {option!r:.80}; there are {', '.join(SELECTS)}"
        raise AcpError(INVALID_PARAMS, message)
    if not isinstance(value, str):
        raise AcpError(
            INVALID_PARAMS, f"session/set_config_option: the value of {option} is a text"
        )
    return {field: value}


def _select(
    option: str, name: str, category: str, value: str, rows: Sequence[tuple[str, str, str]]
) -> JsonObject:
    listed: list[JsonValue] = []
    for row, label, text in rows:
        more: JsonObject = {"description": text} if text else {}
        listed.append({"value": row, "name": label, **more})
    return {
        "id": option,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": listed,
    }
