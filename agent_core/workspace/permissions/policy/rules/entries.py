"""Makes a rule of an entry of `policy.json`, and an entry of a rule."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeGuard

from agent_core.kernel.json import JsonObject, JsonValue, as_object, is_object
from agent_core.kernel.unknown_keys import NOTES as FOR_PEOPLE, nearest
from agent_core.workspace.permissions.policy.rules.rule import (
    PolicyRuleScope,
    Rule,
    RuleVerdict,
    named,
)

MOST_TEXTS: Final = 100
MOST_CHARS: Final = 4096
KEYS: Final = frozenset(
    {"id", "tool", "verdict", "argvPrefix", "path", "host", "mcp", "match", "notMatch", "program"}
)
NOTES: Final = frozenset({"note", "comment", "reason", "description", "why"})
"""Keys for notes to people; keys that begin with `_`, `$` or `//` are notes too."""


class RuleProblem(ValueError):
    """An entry is no rule; says what little is known of it."""

    def __init__(self, message: str, entry: JsonValue) -> None:
        super().__init__(message)
        fields = as_object(entry)
        self.rule_id = _word_or_none(fields.get("id"))
        self.tool = _word_or_none(fields.get("tool"))
        self.verdict = _word_or_none(fields.get("verdict"))


def read_entry(entry: JsonValue, *, scope: PolicyRuleScope, home: Path | None) -> Rule:
    """Make a rule of an entry.

    Raises:
        RuleProblem: It is none.
    """
    if not is_object(entry):
        raise RuleProblem("is not an object: { … }", entry)
    verdict = entry.get("verdict")
    if not _is_verdict(verdict):
        message = f'has the verdict {verdict!r}; there are "allow", "ask" and "deny"'
        raise RuleProblem(message, entry)
    tool = _word(entry, "tool")
    if tool is None:
        raise RuleProblem('names no "tool"', entry)
    if verdict == "allow" and (odd := odd_key(entry, scope)) is not None:
        # A key that was meant to narrow the rule, misspelt or of a later version, must not widen it.
        message = f'has the key {no_such_key(odd)}; what is only for people goes under "note"'
        raise RuleProblem(message, entry)
    rule = Rule(
        id=_word(entry, "id") or "",
        tool=tool,
        verdict=verdict,
        scope=scope,
        argv_prefix=_texts(entry, "argvPrefix"),
        path=_at_home(_word(entry, "path"), home),
        host=_word(entry, "host"),
        mcp=_word(entry, "mcp"),
        match=_texts(entry, "match"),
        not_match=_texts(entry, "notMatch"),
        program=_word(entry, "program"),
    )
    return rule if rule.id else named(rule)


def entry_of(rule: Rule) -> JsonObject:
    """Return the entry of a rule, without the conditions that the rule does not have."""
    fields: dict[str, JsonValue] = {
        "argvPrefix": list(rule.argv_prefix) or None,
        "path": rule.path,
        "host": rule.host,
        "mcp": rule.mcp,
        "program": rule.program,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    examples: JsonObject = {"match": list(rule.match), "notMatch": list(rule.not_match)}
    return {"id": rule.id, "tool": rule.tool, "verdict": rule.verdict, **given, **examples}


def odd_key(entry: JsonObject, scope: PolicyRuleScope) -> str | None:
    """Return the first key of an entry that no rule has and that is no note; None: there is none."""
    for key, value in entry.items():
        if key in KEYS or key in NOTES or key.startswith(FOR_PEOPLE):
            continue
        if key != "scope" or value != scope:
            return key
    return None


def no_such_key(key: str) -> str:
    """Return the message that no rule has a key, with the nearest valid key if there is one."""
    near = nearest(key, KEYS)
    hint = "" if near is None else f" (did you mean {near!r}?)"
    return f"{key!r}, which no rule has here{hint}"


def _word(entry: JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > MOST_CHARS or "\0" in value:
        message = f"has no usable text under {key!r}"
        raise RuleProblem(message, entry)
    return value


def _texts(entry: JsonObject, key: str) -> tuple[str, ...]:
    value = entry.get(key)
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > MOST_TEXTS:
        message = f"must have a list of at most {MOST_TEXTS} texts under {key!r}"
        raise RuleProblem(message, entry)
    texts = tuple(word for word in value if isinstance(word, str) and len(word) <= MOST_CHARS)
    if len(texts) != len(value) or (key == "argvPrefix" and not (texts and texts[0])):
        message = f"must have texts under {key!r}, the first of a command not empty"
        raise RuleProblem(message, entry)
    return texts


def _is_verdict(value: JsonValue) -> TypeGuard[RuleVerdict]:
    return value in {"allow", "ask", "deny"} if isinstance(value, str) else False


def _at_home(path: str | None, home: Path | None) -> str | None:
    if path is None or home is None or not path.startswith("~/"):
        return path
    return f"{home}{path[1:]}"


def _word_or_none(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
