"""Decides which calls may run without a person: modes, trust, containment and rules, as pure values."""

from agent_core.workspace.permissions.policy.commands.git_inspection import git_starts_programs
from agent_core.workspace.permissions.policy.commands.git_operations import (
    GitUse,
    git_use,
    line_starts_programs,
    writes_data,
)
from agent_core.workspace.permissions.policy.commands.git_settings import starts_programs
from agent_core.workspace.permissions.policy.decision import decide
from agent_core.workspace.permissions.policy.outcomes import (
    Ask,
    Decision,
    Option,
    OptionKind,
    Refuse,
    Risk,
    Run,
)
from agent_core.workspace.permissions.policy.rules.rule import (
    Rule,
    RuleSet,
    RuleVerdict,
    Scope,
    named,
)
from agent_core.workspace.permissions.policy.rules.rules_file import (
    Loaded,
    Origin,
    Problem,
    load_rules,
    remembered_file,
)
from agent_core.workspace.permissions.policy.rules.rules_file_writer import remove_rule, save_rule
from agent_core.workspace.permissions.policy.subjects import (
    CommandAsked,
    FileAsked,
    FileOperation,
    OtherAsked,
    Situation,
    Subject,
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
