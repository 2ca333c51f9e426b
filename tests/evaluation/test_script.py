"""The scripted model's edits are unique in the old text, and make the new one."""

import random
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from agent_core.kernel.json import as_object
from tiller_server.evaluation.scripted.model_server import serve_scripts, steps_done
from tiller_server.evaluation.scripted.script import ModelScript, edits_of, placed


def applied(old: str, edits: list[Any]) -> str:
    places = []
    for edit in edits:
        assert old.count(edit["oldText"]) == 1
        places.append((old.index(edit["oldText"]), edit))
    for place, edit in sorted(places, key=lambda one: -one[0]):
        old = old[:place] + edit["newText"] + old[place + len(edit["oldText"]) :]
    return old


@pytest.mark.parametrize("seed", range(40))
def test_edits_make_the_new_text(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    old = [chance.choice("abcd") + "\n" for _ in range(chance.randint(1, 30))]
    new = list(old)
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(new) + 1)
        new[place : place + chance.randint(0, 2)] = [chance.choice("abxy") + "\n"]
    before, after = "".join(old), "".join(new)
    assert applied(before, edits_of(before, after)) == after


def test_places_are_filled_in_everywhere() -> None:
    value = {"a": ["{outside}/x", 1], "b": {"c": "{other}"}}
    assert placed(value, {"outside": "/o"}) == {"a": ["/o/x", 1], "b": {"c": "{other}"}}


def test_a_call_that_a_kill_interrupted_is_made_again() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1"}]}
    done = {"role": "tool", "content": "ok"}
    lost = {"role": "tool", "content": "Interrupted: the program that ran this call ended."}
    assert steps_done([{"role": "user", "content": "x"}, call, done]) == 1
    assert steps_done([call, done, call, lost, {"role": "user", "content": "Continue"}]) == 1


def test_an_agent_that_is_killed_on_the_way_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    request = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{"
    with serve_scripts() as model:
        providers = model.play("m", ModelScript(calls=()))
        address = urlsplit(str(as_object(providers["scripted"])["baseUrl"]))
        with socket.create_connection((str(address.hostname), address.port or 0)) as client:
            client.sendall(request)
        reply = httpx.post(
            f"{address.geturl()}/chat/completions", json={"model": "m", "messages": []}
        )
    assert reply.text.endswith("data: [DONE]\n\n")
    assert capfd.readouterr().err == ""
