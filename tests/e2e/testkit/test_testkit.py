"""The scripted provider, the look at processes and the sample projects keep their promises."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.testkit import projects
from tests.support.provider import LoopbackProvider, write_config
from tests.support.workspace.processes import descendants, living, processes_with, wait_gone

Json = dict[str, Any]
TEXT = "Grüße, 世界 𝄞 — the end."
APIS = ("openai", "anthropic")


@pytest.fixture(scope="module")
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider() as one:
        yield one


def ask(provider: LoopbackProvider, api: str, **body: Any) -> httpx.Response:
    path = "/v1/chat/completions" if api == "openai" else "/v1/messages"
    sent = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, **body}
    headers = {"authorization": "Bearer secret", "x-api-key": "secret"}
    return httpx.post(provider.origin + path, json=sent, headers=headers, timeout=10)


def decoded(raw: bytes) -> list[Any]:
    blocks = [block.split("data: ", 1)[1] for block in raw.decode().split("\n\n") if block]
    return [block if block == "[DONE]" else json.loads(block) for block in blocks]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("chunking", ["events", "bytes:1", "bytes:7", "utf8", "boundary"])
def test_every_chunking_carries_the_same_events(
    provider: LoopbackProvider, api: str, chunking: str
) -> None:
    turn: Json = {
        "text": TEXT,
        "thinking": "hmm 𝄞",
        "tool_calls": [{"name": "read", "arguments": {"path": "ä"}, "id": "c1"}],
        "usage": {"input": 7, "output": 5, "cacheRead": 2},
    }
    provider.script([{**turn, "chunking": "glue"}, {**turn, "chunking": chunking}])
    whole, cut = (
        json.loads(
            json.dumps(decoded(ask(provider, api).content))
            .replace(f"_{n}", "")
            .replace(f"-{n}", "")
        )
        for n in provider_numbers(provider)
    )
    assert cut == whole


def provider_numbers(provider: LoopbackProvider) -> tuple[int, int]:
    """Give the numbers of the next two requests, which the ids in their answers carry."""
    count = sum(entry["method"] == "POST" for entry in provider.log(bodies="without"))
    return count + 1, count + 2


def test_openai_streams_have_the_shape_of_the_api(provider: LoopbackProvider) -> None:
    calls = [{"name": "a", "arguments": {"x": 1}, "id": "c1"}, {"name": "b", "arguments": "{oops"}]
    provider.script([{"text": TEXT, "deltas": 5, "tool_calls": calls}])
    *chunks, done = decoded(ask(provider, "openai").content)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    fragments = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert done == "[DONE]"
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == TEXT
    assert [call["function"]["name"] for call in fragments if "id" in call] == ["a", "b"]
    assert [
        "".join(one["function"]["arguments"] for one in fragments if one["index"] == index)
        for index in (0, 1)
    ] == ['{"x": 1}', "{oops"]
    assert [one["choices"][0]["finish_reason"] for one in chunks if one["choices"]][
        -1
    ] == "tool_calls"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] > 0


def test_anthropic_streams_have_the_shape_of_the_api(provider: LoopbackProvider) -> None:
    provider.script([{"thinking": "hm", "text": "hi", "tool_calls": [{"name": "ls"}]}])
    events = decoded(ask(provider, "anthropic").content)
    starts = [
        one["content_block"]["type"] for one in events if one["type"] == "content_block_start"
    ]
    kinds = {one["delta"]["type"] for one in events if one["type"] == "content_block_delta"}
    assert [events[0]["type"], events[1]["type"]] == ["message_start", "ping"]
    assert starts == ["thinking", "text", "tool_use"]
    assert kinds == {"thinking_delta", "signature_delta", "text_delta", "input_json_delta"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-1] == {"type": "message_stop"}


@pytest.mark.parametrize(("chunking", "seam"), [("utf8", "character"), ("boundary", "blank line")])
def test_chunks_are_cut_where_it_hurts(
    provider: LoopbackProvider, chunking: str, seam: str
) -> None:
    provider.script([{"text": TEXT, "chunking": chunking}])
    url = provider.base_url + "/chat/completions"
    with httpx.stream("POST", url, json={"stream": True}) as response:
        chunks = list(response.iter_raw())
    if seam == "character":
        assert any(0x80 <= chunk[0] < 0xC0 for chunk in chunks)
    else:
        assert all(chunk.startswith(b"\n") for chunk in chunks[1:])


def test_a_cut_is_an_error_of_http_and_an_early_end_is_not(provider: LoopbackProvider) -> None:
    provider.script(
        [{"text": TEXT, "cut_after_bytes": 300}, {"text": TEXT, "eof_after_bytes": 300}]
    )
    with pytest.raises(httpx.RemoteProtocolError):
        ask(provider, "openai")
    assert len(ask(provider, "openai").content) == 300


def test_a_stall_pauses_and_an_endless_one_ends_with_the_client() -> None:
    with LoopbackProvider(
        [
            {"text": "abc", "stall_after_bytes": [200, 0.2]},
            {"text": "abc", "deltas": 3, "stall_forever_after_deltas": 2},
        ]
    ) as provider:
        assert decoded(ask(provider, "openai").content)[-1] == "[DONE]"
        url = provider.base_url + "/chat/completions"
        with httpx.stream("POST", url, json={"stream": True}) as response:
            said = b""
            for chunk in response.iter_raw():
                said += chunk
                if b'"content":"b"' in said:
                    break
        log = provider.wait_gone(1)
    assert [(one["finished"], one["client_gone"]) for one in log] == [(True, False), (False, True)]
    assert b'"content":"c"' not in said


def test_failures_have_status_headers_and_body(provider: LoopbackProvider) -> None:
    slow = {"status": 429, "headers": {"retry-after": "2"}, "body": {"error": {"code": "x"}}}
    provider.script([slow, {"status": 529}])
    refused, overloaded = ask(provider, "openai"), ask(provider, "anthropic")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.json() == {"error": {"code": "x"}}
    assert (overloaded.status_code, overloaded.json()["type"]) == (529, "error")


def test_turns_are_chosen_by_what_the_model_heard_last(provider: LoopbackProvider) -> None:
    provider.script([{"when": "tests ran", "text": "B"}, {"text": "A", "repeat": 2}])
    heard = [
        [{"role": "user", "content": "tests ran"}, {"role": "assistant", "content": "ok"}],
        [{"role": "tool", "content": [{"type": "text", "text": "tests ran"}]}],
        [{"role": "user", "content": [{"type": "tool_result", "content": "tests"}]}],
        [],
    ]
    said = [ask(provider, "openai", messages=messages) for messages in heard]
    assert [one.status_code for one in said] == [200, 200, 200, 400]
    texts = [decoded(one.content)[1]["choices"][0]["delta"]["content"] for one in said[:3]]
    assert texts == ["A", "B", "A"]
    assert "no turn for request" in said[3].json()["error"]["message"]


def test_long_answers_and_long_questions_pass(provider: LoopbackProvider) -> None:
    provider.script([{"deltas": 20_000, "malformed": ": a comment\n\n"}])
    history = [{"role": "user", "content": "x" * 1000} for _ in range(2000)]
    answer = ask(provider, "openai", messages=history)
    entry = provider.requests[-1]
    assert answer.content.count(b'"content":"word "') == 20_000
    assert b"\n\n: a comment\n\n" in answer.content
    assert entry["body"]["messages"] == history
    assert "secret" not in json.dumps(entry["headers"])


def test_a_script_with_a_fault_is_refused(provider: LoopbackProvider) -> None:
    with pytest.raises(ValueError, match="turn 1 has the unknown fields"):
        provider.script([{"text": "a"}, {"texxt": "b"}])


def test_the_configuration_points_at_the_provider(
    provider: LoopbackProvider, tmp_path: Path
) -> None:
    write_config(tmp_path, provider, context_window=8000, settings={"sandbox": "off"})
    model = {"id": "m", "contextWindow": 8000, "maxTokens": 4096}
    lab = {"baseUrl": provider.base_url, "api": "openai-completions", "apiKey": "x"}
    wanted = {"providers": {"lab": {**lab, "models": [model]}}}
    chosen = {
        "defaultProvider": "lab",
        "defaultModel": "m",
        "defaultProjectTrust": "always",
        "titles": "off",
    }
    assert json.loads((tmp_path / "models.json").read_text()) == wanted
    assert json.loads((tmp_path / "settings.json").read_text()) == {**chosen, "sandbox": "off"}


def test_processes_are_found_by_descent_and_mark_and_seen_to_end() -> None:
    mark = "testkit-mark-7f3a"
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        below = processes_with("input()", below=parent.pid, at_least=1)
        assert below == descendants(parent.pid)
        assert parent.pid in processes_with(mark)
        assert wait_gone(below, timeout_s=0.05) == below
        parent.communicate(b"\n")
        assert wait_gone({*below, parent.pid}, timeout_s=5) == set()
        assert living(below) == set()


def test_a_child_that_still_shows_its_parents_arguments_is_not_found() -> None:
    script = "import os\nif not os.fork(): os.read(0, 1)\nelse: os.wait()"
    parent = subprocess.Popen([sys.executable, "-c", script, "mark-51c2"], stdin=subprocess.PIPE)
    with parent:
        with pytest.raises(TimeoutError, match="0 processes"):
            processes_with("mark-51c2", below=parent.pid, at_least=1, timeout_s=0.3)
        assert len(descendants(parent.pid)) == 1
        parent.communicate(b"\n")


@pytest.mark.parametrize("build", [projects.misspelt, projects.nested, projects.with_crlf])
def test_projects_fail_their_tests_until_they_are_repaired(
    build: projects.Builder, tmp_path: Path
) -> None:
    project = build(tmp_path)
    broken = subprocess.run(projects.TEST_COMMAND, cwd=tmp_path, capture_output=True, check=False)
    project.broken.write_bytes(project.repaired().encode())
    repaired = subprocess.run(projects.TEST_COMMAND, cwd=tmp_path, capture_output=True, check=False)
    assert (broken.returncode, repaired.returncode) == (1, 0)
    assert b"NameError" in broken.stderr
