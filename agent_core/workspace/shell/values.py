"""What can be said of a command line after reading it."""

from agent_core.kernel.records import dataclass

Argv = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A line that runs these commands and nothing else, however it goes."""

    commands: tuple[Argv, ...]
    """Each with its words exactly as bash would give them, in order; joined by `&&`, `||`, `;`, `|` or a newline.

    Whether some stand in a group, or behind `!`, makes no difference to what may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """A line of which it is not certain what it runs."""

    reason: str
    """One sentence for a person."""
