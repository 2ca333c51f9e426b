"""Results of reading a command line."""

from agent_core.kernel.values import Value

Argv = tuple[str, ...]


class PlainCommandLine(Value, frozen=True, kw_only=True):
    """A line that runs these commands and nothing else, however it goes."""

    commands: tuple[Argv, ...]
    """Each with its words exactly as bash would give them, in order; joined by `&&`, `||`, `;`, `|` or a newline.

    Whether some stand in a group, or behind `!`, makes no difference to what may run."""


class UnclearCommandLine(Value, frozen=True, kw_only=True):
    """A line of which it is not certain what it runs."""

    reason: str
    """One sentence for a person."""
