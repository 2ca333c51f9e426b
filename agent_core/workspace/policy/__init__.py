"""Decides which calls may run without a person: modes, trust, containment and rules, as pure values."""

from agent_core.workspace.policy.decide import decide
from agent_core.workspace.policy.file import Loaded, Origin, Problem, load_rules, remembered_file
from agent_core.workspace.policy.git_facts import starts_programs
from agent_core.workspace.policy.git_look import git_starts_programs
from agent_core.workspace.policy.git_operations import (
    GitUse,
    git_use,
    line_starts_programs,
    writes_data,
)
from agent_core.workspace.policy.keeping import remove_rule, save_rule
from agent_core.workspace.policy.rules import Rule, RuleSet, RuleVerdict, Scope, named
from agent_core.workspace.policy.subjects import (
    CommandAsked,
    FileAsked,
    FileOperation,
    OtherAsked,
    Situation,
    Subject,
)
from agent_core.workspace.policy.verdicts import (
    Ask,
    Decision,
    Option,
    OptionKind,
    Refuse,
    Risk,
    Run,
)

__all__ = [
    "Ask",
    "CommandAsked",
    "Decision",
    "FileAsked",
    "FileOperation",
    "GitUse",
    "Loaded",
    "Option",
    "OptionKind",
    "Origin",
    "OtherAsked",
    "Problem",
    "Refuse",
    "Risk",
    "Rule",
    "RuleSet",
    "RuleVerdict",
    "Run",
    "Scope",
    "Situation",
    "Subject",
    "decide",
    "git_starts_programs",
    "git_use",
    "line_starts_programs",
    "load_rules",
    "named",
    "remembered_file",
    "remove_rule",
    "save_rule",
    "starts_programs",
    "writes_data",
]
