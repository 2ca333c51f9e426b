"""Modules that are imported at first use, and their import ahead of it in a process that serves many."""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

DEFERRED: Final[Sequence[str]] = (
    "agent_core.changes.commit_check",
    "agent_core.changes.patch",
    "agent_core.changes.revert",
    "agent_core.compaction.prompts",
    "agent_core.extensions.api",
    "agent_core.extensions.context",
    "agent_core.mcp.adapters.http",
    "agent_core.mcp.adapters.library",
    "agent_core.mcp.adapters.stdio",
    "agent_core.mcp.tool",
    "agent_core.session.changes.review",
    "agent_core.session.history.todo",
    "agent_core.session.permissions.guarded_files",
    "agent_core.session.permissions.requests",
    "agent_core.storage.adapters.bodies",
    "agent_core.storage.adapters.entry_collector",
    "agent_core.storage.adapters.lines",
    "agent_core.storage.adapters.recovery",
    "agent_core.storage.adapters.scan",
    "agent_core.storage.summary",
    "agent_core.tools.builtin.grep.fallback_search",
    "agent_core.tools.builtin.grep.search",
    "agent_core.tools.builtin.read.binary_file",
    "agent_core.tools.builtin.read.image",
    "agent_core.tools.builtin.read.image_header",
    "agent_core.tools.builtin.read.notebook",
    "agent_core.tools.builtin.read.page_stream",
    "agent_core.tools.builtin.redaction_marks",
    "agent_core.tools.builtin.search.find_files",
    "agent_core.tools.command_output",
    "agent_core.transcript.cold_entries",
    "agent_core.workspace.diff.conflict_message",
    "agent_core.workspace.diff.merge",
    "agent_core.workspace.diff.minimal_edits",
    "agent_core.workspace.files.disk.delete_and_move",
    "agent_core.workspace.files.disk.folders",
    "agent_core.workspace.files.disk.gate.folder_gate",
    "agent_core.workspace.files.disk.path_handle",
    "agent_core.workspace.files.disk.regular_files",
    "agent_core.workspace.files.disk.watch",
    "agent_core.workspace.files.lookalikes",
    "agent_core.workspace.files.windows_names",
    "agent_core.workspace.files.write_sequence",
    "agent_core.workspace.git.object_command",
    "agent_core.workspace.permissions.policy.commands.arguments",
    "agent_core.workspace.permissions.policy.commands.git_inspection",
    "agent_core.workspace.permissions.policy.commands.git_operations",
    "agent_core.workspace.permissions.policy.decision",
    "agent_core.workspace.permissions.policy.matrix",
    "agent_core.workspace.permissions.policy.rules.entries",
    "agent_core.workspace.permissions.policy.rules.examples",
    "agent_core.workspace.permissions.policy.rules.rules_file_writer",
    "agent_core.workspace.permissions.protected_links",
    "agent_core.workspace.permissions.shell.mentions",
    "agent_core.workspace.permissions.shell.strict_parser",
    "agent_core.workspace.permissions.shell.wrappers",
    "agent_core.workspace.processes.input",
    "agent_core.workspace.processes.launch",
    "agent_core.workspace.processes.namespace",
    "agent_core.workspace.processes.output",
    "agent_core.workspace.processes.tree",
)
"""Every module of the core that a function imports "at first use"; `tiller run` may never need them."""


def import_deferred() -> None:
    """Import them all, so that no first use blocks an event loop. Blocks: call it on a thread."""
    for name in DEFERRED:
        _ = import_module(name)
