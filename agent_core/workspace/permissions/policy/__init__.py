"""Decides which calls may run without a person: modes, trust, containment and rules, as pure values."""

from typing import TYPE_CHECKING

from agent_core.kernel.package_names import lazy_names

if TYPE_CHECKING:
    from agent_core.workspace.permissions.policy.commands.git_inspection import git_starts_programs
    from agent_core.workspace.permissions.policy.commands.git_operations import (
        GitUse,
        git_use,
        line_starts_programs,
        writes_data,
    )
    from agent_core.workspace.permissions.policy.commands.git_settings import starts_programs
    from agent_core.workspace.permissions.policy.decision import decide, decide_unread
    from agent_core.workspace.permissions.policy.rules.rule import (
        PolicyRuleScope,
        Rule,
        RuleSet,
        RuleVerdict,
        named,
    )
    from agent_core.workspace.permissions.policy.rules.rules_file import (
        LoadedRulesFile,
        RulesFileProblem,
        RulesOrigin,
        load_rules,
        remembered_file,
    )
    from agent_core.workspace.permissions.policy.rules.rules_file_writer import (
        remove_rule,
        save_rule,
    )
    from agent_core.workspace.permissions.policy.subjects import (
        Allow,
        Ask,
        CommandAccess,
        Decision,
        Deny,
        FileAccess,
        FileOperation,
        Option,
        PolicyContext,
        PolicyOptionKind,
        PolicyRisk,
        Subject,
        ToolAccess,
    )

__all__ = [
    "Allow",
    "Ask",
    "CommandAccess",
    "Decision",
    "Deny",
    "FileAccess",
    "FileOperation",
    "GitUse",
    "LoadedRulesFile",
    "Option",
    "PolicyContext",
    "PolicyOptionKind",
    "PolicyRisk",
    "PolicyRuleScope",
    "Rule",
    "RuleSet",
    "RuleVerdict",
    "RulesFileProblem",
    "RulesOrigin",
    "Subject",
    "ToolAccess",
    "decide",
    "decide_unread",
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

__getattr__ = lazy_names(
    __name__,
    {
        "commands.git_inspection": ("git_starts_programs",),
        "commands.git_operations": (
            "GitUse",
            "git_use",
            "line_starts_programs",
            "writes_data",
        ),
        "commands.git_settings": ("starts_programs",),
        "decision": (
            "decide",
            "decide_unread",
        ),
        "subjects": (
            "Allow",
            "Ask",
            "Decision",
            "Deny",
            "Option",
            "PolicyOptionKind",
            "PolicyRisk",
            "CommandAccess",
            "FileAccess",
            "FileOperation",
            "PolicyContext",
            "Subject",
            "ToolAccess",
        ),
        "rules.rule": (
            "PolicyRuleScope",
            "Rule",
            "RuleSet",
            "RuleVerdict",
            "named",
        ),
        "rules.rules_file": (
            "LoadedRulesFile",
            "RulesFileProblem",
            "RulesOrigin",
            "load_rules",
            "remembered_file",
        ),
        "rules.rules_file_writer": (
            "remove_rule",
            "save_rule",
        ),
    },
)
