"""`/remember` in `tiller chat` stores a text of the user, which the next session has."""

import json

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, says

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_a_text_is_remembered_and_the_next_session_has_it(ground: Ground) -> None:
    ground.configure(sandbox="off", defaultProjectTrust="always")
    ground.provider.script([says("Noted."), says("Docker.")])
    with chat(ground) as window:
        window.line("/remember")
        _ = window.until("/remember takes a text")
        window.line("/remember Integration tests need Docker")
        _ = window.until("Switch it on?")
        window.line("1")
        _ = window.until("Remembered for this project")
        window.line("/remember --user Answer briefly")
        _ = window.until("Remembered for all your projects")
        assert leave(window) == 0
    with chat(ground) as window:
        window.line("What do tests need?")
        _ = window.until("Noted.")
        assert leave(window) == 0
    body = json.dumps(ground.provider.requests[0]["body"])
    assert "Integration tests need Docker" in body
    assert "Answer briefly" in body
