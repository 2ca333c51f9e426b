"""Writes standing answers into a `policy.json`: whole or not at all, one writer at a time. Blocking."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_core.kernel.errors import ConfigError
from agent_core.kernel.json import JsonObject, JsonValue, is_object
from agent_core.kernel.private_file import locked, replace_text
from agent_core.workspace.permissions.policy.rules.entries import entry_of
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.permissions.policy.rules.rules_file import (
    VERSION,
    read_bytes,
    read_document,
    rule_list,
)

RulesUpdate = Callable[[Sequence[JsonValue]], Sequence[JsonValue]]


def save_rule(path: Path, rule: Rule) -> None:
    """Add a rule, or put it in the place of the one with its id. Everything else in the file stays.

    Raises:
        ConfigError: The file cannot be read or written; it is as it was.
    """
    made = entry_of(rule)

    def change(rules: Sequence[JsonValue]) -> Sequence[JsonValue]:
        if not any(_has_id(one, rule.id) for one in rules):
            return [*rules, made]
        return [
            {**one, **made} if is_object(one) and _has_id(one, rule.id) else one for one in rules
        ]

    _change(path, change)


def remove_rule(path: Path, rule_id: str) -> bool:
    """Remove the rule with an id from a file; return whether there was one.

    Raises:
        ConfigError: The file cannot be read or written; it is as it was.
    """
    if not os.path.lexists(path):
        return False
    found = False

    def change(rules: Sequence[JsonValue]) -> Sequence[JsonValue]:
        nonlocal found
        left = [one for one in rules if not _has_id(one, rule_id)]
        found = len(left) < len(rules)
        return left

    _change(path, change)
    return found


def _change(path: Path, change: RulesUpdate) -> None:
    # A link to where someone keeps their settings stays a link.
    real = Path(os.path.realpath(path))
    try:
        with locked(real):
            document = read_document(read_bytes(real))
            before = rule_list(document)
            after = change(before)
            if list(after) != list(before):
                replace_text(real, _text({"version": VERSION, **document, "rules": after}))
    except ValueError as error:
        message = f"{path} {error}; repair it first: nothing was changed"
        raise ConfigError(message, path=path) from error
    except OSError as error:
        message = f"{path} cannot be changed ({error.strerror or error}); nothing was changed"
        raise ConfigError(message, path=path) from error


def _text(document: JsonObject) -> str:
    import json  # noqa: PLC0415 - the encoder of the core writes one line, and people read this file

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _has_id(entry: JsonValue, rule_id: str) -> bool:
    return is_object(entry) and entry.get("id") == rule_id
