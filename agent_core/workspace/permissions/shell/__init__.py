"""Understands a line of bash: strictly for what may be allowed, leniently for what must be refused."""

from agent_core.workspace.permissions.shell.mentions import mentioned
from agent_core.workspace.permissions.shell.strict_parser import read_command
from agent_core.workspace.permissions.shell.values import Plain, Unclear
from agent_core.workspace.permissions.shell.wrappers import WRAPPERS, is_wrapper

__all__ = ["WRAPPERS", "Plain", "Unclear", "is_wrapper", "mentioned", "read_command"]
