"""Keys of extensions in the input line: the key sequence of each, and bindings that follow what is offered."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.kernel.errors import UsageError

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import DynamicKeyBindings, KeyBindings, KeyPressEvent

_FUNCTION_KEY: Final = re.compile(r"f([1-9]|1\d|2[0-4])")


def terminal_key(key: str) -> tuple[str, ...] | None:
    """Return the sequence that a terminal sends for a key, as prompt_toolkit names it; None: it sends none of its own.

    Args:
        key: Name of the key, as extensions write it: `ctrl+t`, `alt+x`, `ctrl+alt+p`, `f5`, `ctrl+f5`.
    """
    *modifiers, name = key.lower().split("+")
    is_function_key = _FUNCTION_KEY.fullmatch(name) is not None
    is_letter = len(name) == 1 and name.isascii() and name.isalpha()
    match sorted(modifiers):
        case [] if is_function_key:
            return (name,)
        case ["ctrl"] if is_letter or is_function_key:
            return (f"c-{name}",)
        case ["alt"] if len(name) == 1 and name.isascii() and name.isprintable():
            return ("escape", name)
        case ["alt", "ctrl"] if is_letter:
            return ("escape", f"c-{name}")
        case _:
            return None


class ExtensionKeys:
    """Keys that extensions offer now, and the action of one."""

    def __init__(
        self,
        offered: Callable[[], Sequence[str]],
        press: Callable[[str], None],
        *,
        tell: Callable[[str], None],
    ) -> None:
        """Create it.

        Args:
            offered: Returns the keys that are offered now.
            press: Starts the function of a key; a `UsageError` says that none is offered any more.
            tell: Shows why a key had no effect.
        """
        self._offered = offered
        self._press = press
        self._tell = tell
        self._bound: tuple[str, ...] = ()
        self._bindings: KeyBindings | None = None

    def bindings(self) -> "DynamicKeyBindings":
        """Return bindings that change when extensions are loaded anew."""
        from prompt_toolkit.key_binding import DynamicKeyBindings  # noqa: PLC0415 - 140 ms

        return DynamicKeyBindings(self._current)

    def _current(self) -> "KeyBindings":
        from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415 - see above

        offered = tuple(self._offered())
        if self._bindings is None or offered != self._bound:
            self._bound, self._bindings = offered, KeyBindings()
            for key in offered:
                if (sequence := terminal_key(key)) is not None:
                    _ = self._bindings.add(*sequence)(partial(self._act, key))
        return self._bindings

    def _act(self, key: str, event: "KeyPressEvent") -> None:
        del event
        try:
            self._press(key)
        except UsageError as error:
            self._tell(str(error))
