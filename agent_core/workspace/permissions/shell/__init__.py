"""Understands a line of bash: strictly for what may be allowed, leniently for what must be refused."""

from typing import TYPE_CHECKING

from agent_core.kernel.package_names import lazy_names

if TYPE_CHECKING:
    from agent_core.workspace.permissions.shell.mentions import mentioned
    from agent_core.workspace.permissions.shell.strict_parser import read_command
    from agent_core.workspace.permissions.shell.values import PlainCommandLine, UnclearCommandLine
    from agent_core.workspace.permissions.shell.wrappers import WRAPPERS, is_wrapper

__all__ = [
    "WRAPPERS",
    "PlainCommandLine",
    "UnclearCommandLine",
    "is_wrapper",
    "mentioned",
    "read_command",
]

__getattr__ = lazy_names(
    __name__,
    {
        "mentions": ("mentioned",),
        "strict_parser": ("read_command",),
        "values": (
            "PlainCommandLine",
            "UnclearCommandLine",
        ),
        "wrappers": (
            "WRAPPERS",
            "is_wrapper",
        ),
    },
)
