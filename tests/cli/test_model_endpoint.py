"""`tiller models add` asks a server for its models before it writes anything, and keeps keys out of models.json."""

import json
from pathlib import Path

import pytest

from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.providers.catalog.models_file import load_models_file
from agent_core.resources.paths import AppPaths, app_paths
from tests.providers.auth.auth_server import auth_server
from tiller_server.cli.model_endpoint import add_endpoint, server_address

pytestmark = pytest.mark.anyio

LISTED = {"data": [{"id": "qwen3"}, {"id": "nomic-embed-text"}, {"id": "llama4"}]}


def paths_below(folder: Path) -> AppPaths:
    return app_paths(
        {
            "TILLER_CONFIG_DIR": str(folder / "c"),
            "TILLER_DATA_DIR": str(folder / "d"),
            "TILLER_RUNTIME_DIR": str(folder / "r"),
        }
    )


async def test_a_server_is_added_with_its_models_at_the_address_that_answers(tmp_path: Path):
    paths = paths_below(tmp_path)
    async with auth_server({"/models": [(404, {})], "/v1/models": [(200, LISTED)]}) as server:
        provider, models = await add_endpoint(paths, f"{server.url}/", provider=None, key=None)
        assert provider.startswith("local-")
        assert models == ["qwen3", "llama4"]
    read = await load_models_file(paths.models)
    assert read.problems == ()
    assert read.providers[provider].base_url == f"{server.url}/v1"
    assert [one.id for one in read.providers[provider].models] == ["qwen3", "llama4"]


async def test_a_key_opens_the_server_and_is_stored_with_the_other_keys(tmp_path: Path):
    paths = paths_below(tmp_path)
    paths.models.parent.mkdir(parents=True)
    _ = paths.models.write_text('{"providers": {"old": {"baseUrl": "http://h/v1"}}}')
    async with auth_server({"/v1/models": [(200, LISTED)]}) as server:
        _ = await add_endpoint(paths, f"{server.url}/v1", provider="lab", key="sk-secret")
        assert server.heard[0].headers["authorization"] == "Bearer sk-secret"
    written = paths.models.read_text("utf-8")
    assert "sk-secret" not in written
    assert set(json.loads(written)["providers"]) == {"old", "lab"}
    stored = json.loads(paths.auth.read_text("utf-8"))
    assert stored["lab"] == {"type": "api_key", "key": "sk-secret"}


async def test_no_key_is_stored_where_the_file_cannot_be_changed(tmp_path: Path):
    paths = paths_below(tmp_path)
    paths.models.parent.mkdir(parents=True)
    _ = paths.models.write_text("{")
    async with auth_server({"/v1/models": [(200, LISTED)]}) as server:
        with pytest.raises(ConfigError, match="repair it first"):
            _ = await add_endpoint(paths, f"{server.url}/v1", provider="lab", key="sk-secret")
    assert paths.models.read_text("utf-8") == "{"
    assert not paths.auth.exists()


@pytest.mark.parametrize(
    ("answer", "key", "said"),
    [
        ((401, {}), None, "it wants a key"),
        ((403, {}), "k", "check the key"),
        ((200, {"data": []}), None, "has no model; load one"),
        ((200, {"models": 1}), None, "lists no models at /v1"),
    ],
)
async def test_a_server_that_lists_nothing_leaves_the_file_as_it_was(
    tmp_path: Path, answer: tuple[int, object], key: str | None, said: str
):
    paths = paths_below(tmp_path)
    async with auth_server({"/v1/models": [answer]}) as server:
        with pytest.raises(UsageError, match=said):
            _ = await add_endpoint(paths, f"{server.url}/v1", provider="lab", key=key)
    assert not paths.models.exists()
    assert not paths.auth.exists()


@pytest.mark.parametrize(
    ("url", "provider", "said"),
    [
        ("ftp://x/v1", None, "no address of a server"),
        ("here", None, "no address of a server"),
        ("http://me:secret@x/v1", None, "must hold no key"),
        ("http://x/v1?key=secret", None, "must hold no key"),
        ("http://x/v1", "My Lab", "cannot be the id"),
        ("http://x/v1", "openai", "knows already; choose another --id"),
        ("http://127.0.0.1:9/v1", "lab", "cannot be reached; check the address"),
    ],
)
async def test_a_wrong_address_is_one_sentence_without_its_secret(
    tmp_path: Path, url: str, provider: str | None, said: str
):
    with pytest.raises(UsageError, match=said) as raised:
        _ = await add_endpoint(paths_below(tmp_path), url, provider=provider, key=None)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("127.0.0.1:8999", "http://127.0.0.1:8999"),
        ("localhost:8000/v1/", "http://localhost:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("models.example.com/v1", "https://models.example.com/v1"),
        (" http://10.0.0.2:1234 ", "http://10.0.0.2:1234"),
    ],
)
def test_an_address_may_lack_its_scheme(typed: str, address: str) -> None:
    assert server_address(typed) == address
