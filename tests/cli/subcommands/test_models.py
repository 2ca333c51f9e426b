"""`tiller models` lists what can be used, says where each value came from, and makes one the default."""

import argparse
import json
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tiller_server.cli.environment import Environment
from tiller_server.cli.model_table import tokens
from tiller_server.cli.subcommands import models

Capture = pytest.CaptureFixture[str]
LAB = {
    "baseUrl": "http://127.0.0.1:1/v1",
    "api": "openai-completions",
    "apiKey": "x",
    "headers": {"x-key": "sk-header"},
    "models": [{"id": "m", "contextWindow": 32_000, "cost": {"input": 1, "output": 2.5}}],
}
CLOSED = {
    name: {"baseUrl": "http://127.0.0.1:1/v1"}
    for name in ("ollama", "lmstudio", "llamacpp", "vllm")
}


def run(tmp_path: Path, verb: str | None, **given: Any) -> int:
    variables = {name: value for name, value in given.items() if name.isupper()}
    chosen = {name: value for name, value in given.items() if not name.isupper()}
    folders = {
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
    }
    options = {"verb": verb, "json": False, "all": False, "model": None} | chosen
    return models.main(argparse.Namespace(**options), Environment(folders | variables))


def configure(tmp_path: Path, providers: Any, settings: str | None = None) -> Path:
    folder = tmp_path / "c"
    folder.mkdir(exist_ok=True)
    text = json.dumps({"providers": CLOSED | providers})
    (folder / "models.json").write_text(text, "utf-8")
    if settings is not None:
        (folder / "settings.json").write_text(settings, "utf-8")
    return folder / "settings.json"


@contextmanager
def local_server(answer: Any) -> Generator[str]:
    """Serve a list of models on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_list_has_what_can_be_used_and_marks_the_default(
    tmp_path: Path, capsys: Capture
) -> None:
    configure(tmp_path, {"lab": LAB}, '{"defaultProvider": "lab", "defaultModel": "m"}')
    assert run(tmp_path, None, CEREBRAS_API_KEY="sk-c") == 0
    said = capsys.readouterr()
    rows = [line.split() for line in said.out.splitlines()[1:]]
    assert ["*", "lab/m", "32k", "1/2.5", "models.json"] in rows
    providers = {row[0].split("/")[0] for row in rows if row[0] != "*"}
    assert providers == {"cerebras", "embedded"}
    assert "more need a key: tiller models list --all" in said.err
    assert run(tmp_path, "list", all=True) == 0
    everything = capsys.readouterr()
    assert len(everything.out.splitlines()) > 100
    assert "sk-" not in said.out + said.err + everything.out + everything.err


def test_a_server_of_this_machine_is_found_with_its_models(tmp_path: Path, capsys: Capture) -> None:
    answer = {"data": [{"id": "qwen3:8b"}, {"id": "big", "max_model_len": 65_536}, {"id": 3}, 4]}
    with local_server(answer) as url:
        configure(tmp_path, {"vllm": {"baseUrl": url}})
        assert run(tmp_path, None, json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["localServers"] == ["vllm"]
    found = {row["model"]: row for row in body["models"] if row["model"].startswith("vllm/")}
    assert list(found) == ["vllm/qwen3:8b", "vllm/big"]
    assert found["vllm/qwen3:8b"]["contextWindow"] is None
    assert found["vllm/big"]["contextWindow"] == 65_536
    assert found["vllm/big"]["prices"] is None


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/api"])
def test_ollama_is_found_at_any_of_its_addresses(
    tmp_path: Path, capsys: Capture, path: str
) -> None:
    with local_server({"data": [{"id": "qwen3:8b"}]}) as url:
        configure(tmp_path, {"ollama": {"baseUrl": f"{url.removesuffix('/v1')}{path}"}})
        assert run(tmp_path, None, json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["localServers"] == ["ollama"]
    assert "ollama/qwen3:8b" in {row["model"] for row in body["models"]}


@pytest.mark.parametrize("answer", [[], {"data": "x"}, {"error": "no"}, "text"])
def test_a_server_that_is_something_else_is_no_model_server(
    tmp_path: Path, capsys: Capture, answer: Any
) -> None:
    with local_server(answer) as url:
        configure(tmp_path, {"llamacpp": {"baseUrl": url}})
        assert run(tmp_path, None, json=True) == 0
    assert json.loads(capsys.readouterr().out)["localServers"] == []


def test_show_tells_every_value_with_its_source(tmp_path: Path, capsys: Capture) -> None:
    overrides = {"modelOverrides": {"gpt-6.1-sol": {"maxTokens": 99, "cost": {"input": 7}}}}
    configure(tmp_path, {"openai": overrides, "lab": LAB})
    assert run(tmp_path, "show", model="openai/gpt-6.1-sol", OPENAI_API_KEY="k") == 0
    lines = capsys.readouterr().out.splitlines()
    ends = {line[:18].strip(): line.split()[-1] for line in lines}
    assert ends["context window"] == "catalogue"
    assert (ends["max tokens"], ends["prices"]) == ("models.json", "models.json")
    assert ends["key"] == "(OPENAI_API_KEY)"
    where = {"AZURE_OPENAI_BASE_URL": "https://mine", "AZURE_OPENAI_API_KEY": "k"}
    assert run(tmp_path, "show", model="azure-openai/gpt-5", json=True, **where) == 0
    azure = json.loads(capsys.readouterr().out)
    assert (azure["baseUrl"], azure["sources"]["base_url"]) == ("https://mine", "environment")
    assert run(tmp_path, "show", model="lab/m", json=True) == 0
    lab = capsys.readouterr().out
    assert json.loads(lab)["sources"]["prices"] == "models.json"
    assert "sk-header" not in lab
    assert run(tmp_path, "show", model="ollama/new:1b", json=True) == 0
    assert json.loads(capsys.readouterr().out)["sources"]["max_tokens"] == "default"


def test_show_takes_names_as_people_write_them_and_refuses_what_nobody_has(
    tmp_path: Path, capsys: Capture
) -> None:
    configure(tmp_path, {})
    assert run(tmp_path, "show", model="anthropic/*sonnet*:high") == 0
    assert capsys.readouterr().out.startswith("model             anthropic/claude-sonnet-5-5\n")
    assert run(tmp_path, "show", model="anthropic/claude-9") == 2
    said = capsys.readouterr().err
    assert said.startswith("tiller models: no model is called 'anthropic/claude-9'; did you mean ")


def test_use_changes_the_default_and_nothing_else(tmp_path: Path, capsys: Capture) -> None:
    text = '{"theirs": {"b": 1, "a": [2]},\n "defaultModel": "old", "retry": {"maxRetries": 9}}'
    path = configure(tmp_path, {"lab": LAB}, text)
    path.chmod(0o640)
    assert run(tmp_path, "use", model="m:low") == 0
    assert capsys.readouterr().out == f"lab/m:low is the default now ({path})\n"
    assert json.loads(path.read_text("utf-8")) == {
        "theirs": {"b": 1, "a": [2]},
        "defaultModel": "m",
        "retry": {"maxRetries": 9},
        "defaultProvider": "lab",
        "defaultThinkingLevel": "low",
    }
    assert list(json.loads(path.read_text("utf-8"))) == [
        "theirs",
        "defaultModel",
        "retry",
        "defaultProvider",
        "defaultThinkingLevel",
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    there = sorted(each.name for each in path.parent.iterdir())
    assert there == ["models.json", "settings.json", "settings.json.lock"]


def test_use_makes_the_file_when_there_is_none(tmp_path: Path) -> None:
    path = configure(tmp_path, {"lab": LAB})
    assert run(tmp_path, "use", model="lab/m") == 0
    assert json.loads(path.read_text("utf-8")) == {"defaultProvider": "lab", "defaultModel": "m"}


@pytest.mark.parametrize(
    ("model", "settings", "why"),
    [
        ("anthropic/claude-haiku-4-5", "{}", "has no key; set the environment variable ANTHROPIC"),
        ("nobody", "{}", "no model is called 'nobody'"),
        ("lab/m", '{"a": 1,\n oops}', "settings.json:2:2: is not valid JSON"),
        ("lab/m", "[]", "settings.json:1:1: must hold a JSON object"),
    ],
)
def test_use_refuses_in_one_sentence_and_leaves_the_file(
    tmp_path: Path, capsys: Capture, model: str, settings: str, why: str
) -> None:
    path = configure(tmp_path, {"lab": LAB}, settings)
    assert run(tmp_path, "use", model=model) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert why in said.err
    assert path.read_text("utf-8") == settings


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "?"),
        (512, "512"),
        (8_192, "8k"),
        (200_000, "200k"),
        (1_000_000, "1M"),
        (1_050_000, "1.05M"),
    ],
)
def test_numbers_of_tokens_are_short(count: int, shown: str) -> None:
    assert tokens(count) == shown
