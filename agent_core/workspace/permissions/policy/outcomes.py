"""Decisions of the policy, and the options of a person when the decision is to ask."""

from typing import Literal

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.rules.rule import Rule

PolicyOptionKind = Literal[
    "allowOnce",
    "allowRun",
    "allowSession",
    "allowProject",
    "allowUser",
    "rejectOnce",
    "rejectAlways",
]
PolicyRisk = Literal["low", "medium", "high"]


class Option(Value, frozen=True, kw_only=True):
    """One way to answer."""

    id: str
    kind: PolicyOptionKind
    label: str
    """At most 60 characters, without line breaks or invisible characters."""
    rule: Rule | None = None
    """Rule that is stored when the option is chosen; None: no rule is stored."""


class Allow(Value, frozen=True, kw_only=True):
    """It may run without a person."""

    reason: str
    rule: Rule | None = None


class Ask(Value, frozen=True, kw_only=True):
    """A person must say so first."""

    reason: str
    risk: PolicyRisk
    options: tuple[Option, ...]
    default: str
    """The id of the option that stands when nobody answers: always a refusal."""
    rule: Rule | None = None


class Deny(Value, frozen=True, kw_only=True):
    """It must not run, and nobody is asked."""

    reason: str
    happened: str | None = None
    """The reason for people; None: it is for them as it is."""
    rule: Rule | None = None


Decision = Allow | Ask | Deny
