"""`tiller auth` stores keys where they belong, says what opens what, and never shows one."""

import argparse
import io
import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from agent_core.providers.auth.oauth import DeviceFacts, StoredTokens
from tests.providers.auth.auth_server import auth_server
from tiller_server.cli.environment import Environment
from tiller_server.cli.sign_in import log_in
from tiller_server.cli.subcommands import auth

Capture = pytest.CaptureFixture[str]
# Together and Hugging Face have no test of a key: with them nothing leaves the machine.


class Piped(io.StringIO):
    """A standard input that is no terminal."""

    def isatty(self) -> bool:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        return False


def run(tmp_path: Path, verb: str, *, stdin: str | None = None, **given: Any) -> int:
    options = {"provider": None, "key": False, "keyring": False, "json": False, "verb": verb}
    variables = {name: value for name, value in given.items() if name.isupper()}
    chosen = {name: value for name, value in given.items() if not name.isupper()}
    folders = {
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", Piped(stdin or ""))
        return auth.main(argparse.Namespace(**options | chosen), Environment(folders | variables))


def stored(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "c" / "auth.json").read_text("utf-8"))


def test_a_key_from_a_pipe_is_stored_and_not_shown(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "login", provider="together", key=True, stdin=" sk-secret\n") == 0
    said = capsys.readouterr()
    assert said.out == f"Stored the key of Together AI in {tmp_path}/c/auth.json\n"
    assert "sk-secret" not in said.out + said.err
    assert stored(tmp_path) == {"together": {"type": "api_key", "key": "sk-secret"}}


@pytest.mark.parametrize(
    ("key", "kept"), [("$a$b", "$$a$$b"), ("!rm", "$!rm"), ("a!b", "a!b"), ("!$x", "$!$$x")]
)
def test_a_key_stands_for_itself_whatever_signs_it_has(tmp_path: Path, key: str, kept: str) -> None:
    assert run(tmp_path, "login", provider="huggingface", key=True, stdin=key) == 0
    assert stored(tmp_path)["huggingface"]["key"] == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"stdin": "k"}, "name the provider: anthropic, openai, "),
        ({"provider": "opnai", "stdin": "k"}, "unknown provider 'opnai'; did you mean openai"),
        ({"provider": "zzzz", "stdin": "k"}, "add it to models.json"),
        ({"provider": "openai", "stdin": " \n"}, "there is no key on standard input"),
        ({"provider": "openai", "stdin": "sk-two words"}, "invalid key"),
        ({"provider": "openai", "stdin": "sk-schlüssel"}, "invalid key"),
        ({"provider": "openai", "stdin": "sk-" + "x" * 20_000}, "invalid key"),
    ],
    ids=["none", "misspelt", "unknown", "blank", "words", "signs", "flood"],
)
def test_what_cannot_be_stored_is_one_sentence_that_does_not_show_it(
    tmp_path: Path, capsys: Capture, given: dict[str, str], why: str
) -> None:
    assert run(tmp_path, "login", key=True, **given) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert why in said.err
    assert "sk-" not in said.err
    assert not (tmp_path / "c" / "auth.json").exists()


def test_logging_out_forgets_and_says_what_still_opens(tmp_path: Path, capsys: Capture) -> None:
    run(tmp_path, "login", provider="together", key=True, stdin="sk-a")
    run(tmp_path, "login", provider="huggingface", key=True, stdin="sk-b")
    capsys.readouterr()
    assert run(tmp_path, "logout", provider="together") == 0
    assert capsys.readouterr().out == "Signed out of together\n"
    assert list(stored(tmp_path)) == ["huggingface"]
    assert run(tmp_path, "logout", provider="together", TOGETHER_API_KEY="sk-env") == 0
    assert capsys.readouterr().out == (
        "Nothing is stored for together. Its key comes from: environment (TOGETHER_API_KEY)\n"
    )
    assert run(tmp_path, "logout", provider="nobody") == 2


def test_an_entry_of_a_provider_that_is_gone_can_still_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "c" / "auth.json"
    path.parent.mkdir()
    path.write_text('{"gone": {"type": "api_key", "key": "k"}}', "utf-8")
    assert run(tmp_path, "logout", provider="gone") == 0
    assert stored(tmp_path) == {}


def test_the_status_lists_every_provider_with_what_opens_it(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "c" / "models.json"
    path.parent.mkdir()
    lab = {"baseUrl": "http://h/v1", "api": "openai-completions", "models": [{"id": "m"}]}
    providers = {"lab": lab | {"apiKey": "sk-lab"}, "dry": lab | {"apiKey": "$DRY"}}
    path.write_text(json.dumps({"providers": providers}), "utf-8")
    assert run(tmp_path, "status", GROQ_API_KEY="sk-groq", AWS_PROFILE="work") == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in said.splitlines()}
    assert rows["groq"].split(maxsplit=1) == ["ready", "environment (GROQ_API_KEY)"]
    assert rows["amazon-bedrock"].split(maxsplit=1) == ["ready", "environment (AWS_PROFILE)"]
    assert rows["lab"].split(maxsplit=1) == ["ready", "models.json"]
    assert rows["ollama"].split(maxsplit=1) == ["ready", "none is needed"]
    assert rows["dry"] == "no key    set the environment variable DRY"
    assert rows["xai"] == "no key    tiller auth login xai or XAI_API_KEY"
    assert len(rows) >= 25
    assert "sk-" not in said


def test_the_status_can_be_read_by_programs(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c" / "auth.json"
    path.parent.mkdir()
    path.write_text('{"openai": 3}', "utf-8")
    path.chmod(0o600)
    assert run(tmp_path, "status", json=True, XAI_API_KEY="sk-x") == 0
    body = json.loads(capsys.readouterr().out)
    rows = {row["id"]: row for row in body["providers"]}
    assert rows["xai"] == {
        "id": "xai",
        "name": "xAI",
        "auth": "ok",
        "source": "environment (XAI_API_KEY)",
        "advice": None,
        "login": "key",
    }
    assert (rows["github-copilot"]["login"], rows["openrouter"]["login"]) == ("code", "browser")


def test_a_broken_file_is_told_and_not_written_over(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c" / "auth.json"
    path.parent.mkdir()
    path.write_text('{"openai": oops}', "utf-8")
    assert run(tmp_path, "login", provider="huggingface", key=True, stdin="sk-b") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"tiller auth: {path}:1:12: not JSON")
    assert path.read_text("utf-8") == '{"openai": oops}'


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "c").write_text("a file", "utf-8")
    assert run(tmp_path, "login", provider="huggingface", key=True, stdin="sk-b") != 0
    said = capsys.readouterr().err
    assert "cannot be written" in said
    assert "sk-b" not in said


async def test_a_login_with_a_code_shows_where_to_go_and_what_to_type(capsys: Capture) -> None:
    device = {
        "device_code": "sk-device",
        "user_code": "AB-CD",
        "verification_uri": "https://x/device",
        "interval": 0,
    }
    answers = {"/device": [(200, device)], "/token": [(200, {"access_token": "sk-token"})]}
    async with auth_server(answers) as server:
        facts = DeviceFacts(
            device_url=f"{server.url}/device", token_url=f"{server.url}/token", client_id="t"
        )
        entry = await log_in(facts, show_url=auth._show_url, show_code=auth._show_code)
    assert entry == StoredTokens(access="sk-token")
    said = capsys.readouterr().err
    assert said == "Open https://x/device and enter the code AB-CD\n"


def test_a_login_with_a_browser_shows_the_address(capsys: Capture) -> None:
    auth._show_url("https://x/authorize?a=b")
    assert "  https://x/authorize?a=b\n" in capsys.readouterr().err


def test_a_provider_of_an_extension_is_listed_and_takes_a_login(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "c" / "extensions"
    folder.mkdir(parents=True)
    (folder / "corp.py").write_text(
        "from agent_core.extensions import DeviceFacts\n"
        "def extension(api):\n"
        "    print('noise')\n"
        "    api.provider('corp', {'name': 'Corp', 'baseUrl': 'http://127.0.0.1:9/v1',\n"
        "        'api': 'openai-completions', 'models': [{'id': 'm'}]}, oauth=DeviceFacts(\n"
        "            device_url='http://127.0.0.1:9/d', token_url='http://127.0.0.1:9/t', client_id='t'))\n",
        "utf-8",
    )
    (folder / "broken.py").write_text("raise ValueError('not today')\n", "utf-8")
    assert run(tmp_path, "status", json=True) == 0
    said = capsys.readouterr()
    rows = {row["id"]: row for row in json.loads(said.out)["providers"]}
    assert (rows["corp"]["auth"], rows["corp"]["login"]) == ("missing", "code")
    assert [line for line in said.err.splitlines() if "broken" in line and "not today" in line]
    assert run(tmp_path, "login", provider="corp") == 1
    assert "127.0.0.1:9 cannot be reached" in capsys.readouterr().err
    assert run(tmp_path, "login", provider="corp", key=True, stdin="sk-corp") == 0
    assert stored(tmp_path) == {"corp": {"type": "api_key", "key": "sk-corp"}}


def test_functions_of_an_extension_sign_in(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "c" / "extensions"
    folder.mkdir(parents=True)
    (folder / "lab.py").write_text(
        "from agent_core.extensions import LoginFunctions, StoredTokens\n"
        "async def login(show):\n"
        "    show('http://lab.test/login', 'AB-12')\n"
        "    return StoredTokens(access='first', refresh='next', expires_ms=0)\n"
        "def extension(api):\n"
        "    api.provider('lab', {'name': 'Lab', 'baseUrl': 'http://127.0.0.1:9/v1',\n"
        "        'api': 'openai-completions', 'models': [{'id': 'm'}]},\n"
        "        oauth=LoginFunctions(login=login, refresh=login))\n",
        "utf-8",
    )
    assert run(tmp_path, "login", provider="lab") == 0
    said = capsys.readouterr()
    assert "Open http://lab.test/login and enter the code AB-12" in said.err
    assert "Signed in to Lab." in said.out
    assert stored(tmp_path)["lab"]["access"] == "first"


@pytest.mark.anyio
async def test_a_key_that_the_provider_refuses_is_not_stored(
    tmp_path: Path, capsys: Capture
) -> None:
    wrong = {"error": {"message": "Incorrect API key provided: sk-wrong"}}
    async with auth_server({"/models": [(401, wrong), (200, {})]}) as server:
        path = tmp_path / "c" / "models.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"providers": {"openai": {"baseUrl": server.url}}}), "utf-8")

        def login() -> int:
            return run(tmp_path, "login", provider="openai", key=True, stdin="sk-wrong")

        assert await anyio.to_thread.run_sync(login) == 2
        said = capsys.readouterr()
        assert (
            "OpenAI refused the key (status 401: Incorrect API key provided: …); nothing was stored"
            in said.err
        )
        assert not (tmp_path / "c" / "auth.json").exists()
        assert await anyio.to_thread.run_sync(login) == 0
    assert capsys.readouterr().err == "OpenAI accepted the key.\n"
