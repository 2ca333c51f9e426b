"""URIs of a client that sees the files under other names."""

import json
from typing import Any

import pytest

from tiller_server.lsp.jsonrpc.uri_mapping import Translation, rest_of

WSL = {"client": "vscode-remote://wsl+Ubuntu/", "server": "file:///"}


@pytest.mark.parametrize(
    ("uri", "prefix", "rest"),
    [
        pytest.param("vscode-remote://wsl+Ubuntu/a/b", WSL["client"], "a/b", id="as it is said"),
        pytest.param("vscode-remote://wsl%2Bubuntu/a%20b", WSL["client"], "a%20b", id="escaped"),
        pytest.param("file:///home/a", "file:///home", "/a", id="without a slash"),
        pytest.param("file:///homes/a", "file:///home", None, id="half a name"),
        pytest.param("file:///home", "file:///home", "", id="the whole of it"),
        pytest.param("untitled:Untitled-1", WSL["client"], None, id="another scheme"),
        pytest.param("file://[broken", WSL["client"], None, id="no URI at all"),
        pytest.param("", WSL["client"], None, id="nothing"),
    ],
)
def test_what_follows_a_prefix_is_found_as_it_is_spelt(
    uri: str, prefix: str, rest: str | None
) -> None:
    assert rest_of(uri, prefix=prefix) == rest


def message(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def introduced(*pairs: dict[str, str]) -> Translation:
    translation = Translation()
    options = {"agent": {"uriMap": list(pairs)}}
    _ = translation.inward(message("initialize", {"initializationOptions": options}))
    return translation


def params_of(body: bytes) -> Any:
    return json.loads(body)["params"]


def test_the_map_turns_the_message_that_brings_it() -> None:
    said = {
        "rootUri": "vscode-remote://wsl+Ubuntu/w",
        "workspaceFolders": [{"uri": "vscode-remote://wsl+Ubuntu/w", "name": "w"}],
        "initializationOptions": {"agent": {"uriMap": [WSL]}},
    }
    seen = params_of(Translation().inward(message("initialize", said)))
    assert (seen["rootUri"], seen["workspaceFolders"][0]["uri"]) == ("file:///w", "file:///w")


def test_a_uri_comes_back_as_the_client_spelt_it() -> None:
    translation = introduced(WSL)
    spelt = "vscode-remote://wsl%2Bubuntu/w/a%20b.py"
    seen = params_of(
        translation.inward(message("textDocument/didOpen", {"textDocument": {"uri": spelt}}))
    )
    assert seen == {"textDocument": {"uri": "file:///w/a%20b.py"}}
    changes = {"edit": {"changes": {"file:///w/a%20b.py": [{"newText": "file:///w"}]}}}
    told = params_of(translation.outward(message("workspace/applyEdit", changes)))
    assert told == {"edit": {"changes": {spelt: [{"newText": "file:///w"}]}}}


def test_words_stay_what_they_are() -> None:
    translation = introduced(WSL)
    said = {"content": [{"type": "text", "text": "see file:///w"}], "input": {"uri": "file:///w"}}
    assert params_of(translation.outward(message("x", said))) == said


def test_lists_of_uris_are_turned() -> None:
    context = {"open": ["vscode-remote://wsl+Ubuntu/a"], "dirty": ["untitled:1"]}
    seen = params_of(introduced(WSL).inward(message("agent/editorContext", context)))
    assert seen == {"open": ["file:///a"], "dirty": ["untitled:1"]}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"initialize"', b"\xff" * 9, b"[" * 9000])
def test_what_is_no_message_passes_as_it_is(body: bytes) -> None:
    translation = introduced(WSL)
    assert translation.inward(body) == body
    assert Translation().inward(body) == body


def test_a_client_without_a_map_pays_nothing() -> None:
    translation = Translation()
    body = message("initialize", {"initializationOptions": {"agent": {"uriMap": [{"client": 1}]}}})
    assert translation.inward(body) is body
    assert translation.outward(body) is body
