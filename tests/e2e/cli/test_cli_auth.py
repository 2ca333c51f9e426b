"""Keys from the user's hand to the provider and nowhere else; what is wrong with them is one sentence."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.clients.server import Ground, says
from tests.support.programs.terminal import tiller
from tests.support.provider import write_config

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

SECRET = "sk-never-to-be-seen-0123456789"
SENT = f"<{len('Bearer ' + SECRET)} characters>"
"""How the journal of the provider shows the header: only its length, which no other key of the tests has."""


def lab(ground: Ground, **fields: Any) -> None:
    """Change what models.json says of the provider; None takes a field away."""
    path = ground.dirs.config / "models.json"
    value = json.loads(path.read_text("utf-8"))
    entry = value["providers"]["lab"] | fields
    value["providers"]["lab"] = {name: one for name, one in entry.items() if one is not None}
    path.write_text(json.dumps(value), "utf-8")


def everything_written(ground: Ground) -> str:
    """Give the text of every file of Tiller but auth.json."""
    folders = (ground.dirs.config, ground.dirs.data, ground.dirs.runtime, ground.root)
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return "".join(file.read_text("utf-8", "replace") for file in files if file.name != "auth.json")


def test_a_stored_key_goes_to_its_provider_and_is_seen_nowhere_else(ground: Ground) -> None:
    stored = tiller(ground, "auth", "login", "lab", "--key", stdin=SECRET.encode())
    assert stored.code == 0
    path = ground.dirs.config / "auth.json"
    assert path.stat().st_mode & 0o777 == 0o600
    ground.provider.script(
        [{"tool_calls": [{"name": "bash", "arguments": {"command": "env"}}]}, says("done")]
    )
    ran = tiller(ground, "run", "--json", "hi")
    assert ran.code == 0
    asked = ground.provider.requests
    assert {one["headers"]["authorization"] for one in asked} == {SENT}
    status, listed = tiller(ground, "auth", "status"), tiller(ground, "models")
    shown = "".join(one.out + one.err for one in (stored, ran, status, listed))
    assert SECRET not in shown + everything_written(ground)
    assert SECRET not in json.dumps([one["body"] for one in asked])
    assert "auth.json" in next(line for line in status.out.splitlines() if line.startswith("lab "))
    assert tiller(ground, "auth", "logout", "lab").out == "Signed out of lab\n"
    assert json.loads(path.read_text("utf-8")) == {}


def test_a_key_that_is_refused_names_the_provider_and_is_masked_where_it_is_echoed(
    ground: Ground,
) -> None:
    tiller(ground, "auth", "login", "lab", "--key", stdin=SECRET.encode())
    body = {
        "error": {"message": f"Incorrect API key provided: {SECRET}", "code": "invalid_api_key"}
    }
    ground.provider.script([{"status": 401, "body": body}])
    ran = tiller(ground, "run", "hi")
    assert ran.code == 2
    assert "lab answered 401" in ran.err
    assert SECRET not in ran.out + ran.err + everything_written(ground)
    assert len(ground.provider.requests) == 1, "a wrong key is not tried again"


def test_a_missing_key_says_which_provider_and_what_to_do(ground: Ground) -> None:
    ran = tiller(ground, "run", "--model", "groq/openai/gpt-oss-120b", "hi")
    assert ran.code == 2
    assert ran.complaint == (
        "tiller run: groq/openai/gpt-oss-120b has no key; set the environment variable GROQ_API_KEY, "
        "sign in (tiller auth login groq), or set apiKey of 'groq' in models.json"
    )


def test_a_broken_auth_file_is_told_with_line_and_column_and_other_keys_still_work(
    ground: Ground,
) -> None:
    path = ground.dirs.config / "auth.json"
    path.write_text(f'{{"lab": {{"type": "api_key",\n "key": "{SECRET}" oops}}}}', "utf-8")
    path.chmod(0o600)
    ground.provider.script([says("fine")])
    ran = tiller(ground, "run", "hi")
    assert (ran.code, ran.out) == (0, "fine\n")
    column = len(f' "key": "{SECRET}" ') + 1
    assert f"{path}:2:{column}: not JSON" in ran.err
    assert SECRET not in ran.err


def test_a_stored_key_that_others_can_read_is_told_and_used(ground: Ground) -> None:
    path = ground.dirs.config / "auth.json"
    path.write_text(json.dumps({"lab": {"type": "api_key", "key": SECRET}}), "utf-8")
    path.chmod(0o644)
    ground.provider.script([says("fine")])
    ran = tiller(ground, "run", "hi")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert f"run: chmod 600 {path}" in ran.err
    assert ground.provider.requests[0]["headers"]["authorization"] == SENT


@contextmanager
def wild_server(answer: bytes, heard: list[bytes]) -> Generator[str]:
    """Answer every connection with the same bytes, whatever they are, and keep what was asked."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            with stream:
                heard.append(stream.recv(65_536))
                stream.sendall(answer)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def http(status: str, body: bytes, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


PAGE = b"<!doctype html><title>Welcome</title>"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http("200 OK", PAGE, "content-type: text/html"), "lab"),
        (http("404 Not Found", PAGE, "content-type: text/html"), "lab answered 404: a web page"),
        (http("200 OK", b'{"hello": "world"}'), "check its base URL"),
        (http("200 OK", b""), "sent an empty stream"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "lab"),
    ],
    ids=["page", "missing page", "other JSON", "nothing", "no HTTP"],
)
def test_an_address_that_is_no_model_server_is_told_with_the_provider(
    ground: Ground, answer: bytes, why: str
) -> None:
    ground.configure(retry={"enabled": False})
    with wild_server(answer, []) as url:
        lab(ground, baseUrl=url, apiKey=SECRET)
        ran = tiller(ground, "run", "hi")
    assert ran.code == 1
    assert why in ran.err
    assert SECRET not in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_a_redirect_to_another_host_is_not_followed_with_the_key(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    elsewhere: list[bytes] = []
    with wild_server(http("200 OK", b"x"), elsewhere) as other:
        answer = http("307 Temporary Redirect", b"", f"location: {other}/chat/completions")
        with wild_server(answer, []) as url:
            lab(ground, baseUrl=url, apiKey=SECRET)
            ran = tiller(ground, "run", "hi")
    assert ran.code == 1
    assert elsewhere == []
    assert "lab answered 307" in ran.err


def test_an_address_that_refuses_is_told(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    lab(ground, baseUrl="http://127.0.0.1:1/v1")
    ran = tiller(ground, "run", "hi")
    assert ran.code == 1
    assert "cannot reach lab" in ran.err
    lab(ground, baseUrl="ftp://127.0.0.1/v1")
    assert (
        "lab cannot be asked: its baseUrl or a header is malformed"
        in tiller(ground, "run", "hi").err
    )


def test_a_provider_that_stalls_is_given_up_after_the_idle_time(ground: Ground) -> None:
    ground.configure(
        retry={"enabled": False}, stream={"firstByteTimeoutS": 0.5, "idleTimeoutS": 0.5}
    )
    ground.provider.script([{"text": "half a word", "stall_after_bytes": [200, 60.0]}])
    ran = tiller(ground, "run", "hi")
    assert ran.code == 1
    assert "lab sent nothing for 0.5 s" in ran.err


def test_a_provider_that_floods_is_cut_off(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    flood = b"data: " + b"x" * 40_000_000
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    with wild_server(head + flood, []) as url:
        lab(ground, baseUrl=url)
        ran = tiller(ground, "run", "hi")
    assert ran.code == 1
    assert "lab" in ran.err
    assert len(ran.err) < 2_000


def test_models_and_their_default_as_a_terminal_sees_them(ground: Ground) -> None:
    write_config(ground.dirs.config, ground.provider, model={"cost": {"input": 1, "output": 2}})
    lab(ground, models=[{"id": "m", "contextWindow": 32_000}, {"id": "other/one:x"}])
    used = tiller(ground, "models", "use", "lab/other/one:x:low")
    assert (used.code, used.err) == (0, "")
    ground.provider.script([says("hello")])
    assert tiller(ground, "run", "hi").out == "hello\n"
    assert ground.provider.requests[-1]["body"]["model"] == "other/one:x"
    shown = tiller(ground, "models", "show", "one:x")
    assert shown.out.startswith("model             lab/other/one:x\n")
    path = Path(ground.dirs.config / "settings.json")
    assert json.loads(path.read_text("utf-8"))["defaultThinkingLevel"] == "low"
