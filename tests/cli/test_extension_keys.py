"""Keys of extensions in a terminal: the sequences that it sends, and bindings that follow what is offered."""

from typing import cast

import pytest
from prompt_toolkit.key_binding import KeyPressEvent

from agent_core.kernel.errors import UsageError
from tiller_server.cli.terminal.extension_keys import ExtensionKeys, terminal_key


@pytest.mark.parametrize(
    ("key", "sequence"),
    [
        ("ctrl+t", ("c-t",)),
        ("Ctrl+T", ("c-t",)),
        ("alt+x", ("escape", "x")),
        ("ctrl+alt+p", ("escape", "c-p")),
        ("f5", ("f5",)),
        ("ctrl+f24", ("c-f24",)),
        ("f25", None),
        ("ctrl+shift+t", None),
        ("ctrl+1", None),
        ("t", None),
    ],
)
def test_a_key_is_the_sequence_that_a_terminal_sends(
    key: str, sequence: tuple[str, ...] | None
) -> None:
    assert terminal_key(key) == sequence


def test_bindings_follow_what_is_offered_and_say_what_is_gone() -> None:
    offered, pressed, told = ["ctrl+t", "ctrl+1"], list[str](), list[str]()

    def press(key: str) -> None:
        if key not in offered:
            message = f"no extension offers {key} any more"
            raise UsageError(message)
        pressed.append(key)

    keys = ExtensionKeys(lambda: offered, press, tell=told.append).bindings()
    (binding,) = keys.bindings
    binding.handler(cast("KeyPressEvent", object()))
    offered.clear()
    binding.handler(cast("KeyPressEvent", object()))
    assert (pressed, told) == (["ctrl+t"], ["no extension offers ctrl+t any more"])
    assert keys.bindings == []
