"""Every kind of ill-typed input gets one clear sentence, and nothing else."""

import pytest
from hypothesis import example, given, strategies as st

from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.wire.base import WireModel
from tiller_server.lsp.wire.capabilities import AgentOptions
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.permissions import PermissionRulesParams
from tiller_server.lsp.wire.runs import PromptParams
from tiller_server.lsp.wire.sessions import ConfigureParams

WORDS = '"text", "image", "file", "resource", "selection", "diagnostics", "diff", "skill"'

SENTENCES: list[tuple[str, object, str]] = [
    ("agent/prompt", {}, "content must be given, got nothing"),
    ("agent/prompt", {"content": None}, "content must be a list, got null"),
    ("agent/prompt", {"content": 5}, "content must be a list, got 5"),
    ("agent/prompt", {"content": []}, "content must have at least 1 entry, got an empty list"),
    ("agent/prompt", {"content": [5]}, "content[0] must be an object, got 5"),
    ("agent/prompt", {"content": [{}]}, f"content[0].type must be one of {WORDS}, got nothing"),
    (
        "agent/prompt",
        {"content": ["fine", {"type": "txt"}]},
        f'content[1].type must be one of {WORDS}, got "txt"',
    ),
    (
        "agent/prompt",
        {"content": [{"type": ["text"]}]},
        f"content[0].type must be one of {WORDS}, got a list",
    ),
    ("agent/prompt", {"content": {"type": "text"}}, "content.text must be given, got nothing"),
    (
        "agent/prompt",
        {"content": [{"type": "text", "text": 1}]},
        "content[0].text must be a string, got 1",
    ),
    (
        "agent/prompt",
        {"content": [{"type": "image", "mime": "image/png"}]},
        "content[0] must have either data, uri or blob, got an object",
    ),
    (
        "agent/prompt",
        {"content": [{"type": "file", "name": "a.pdf"}]},
        "content[0] must have either data or blob, got an object",
    ),
    (
        "agent/prompt",
        {"content": "x", "delivery": "later"},
        'delivery must be one of "auto", "steer", "followUp", "reject", got "later"',
    ),
    (
        "agent/prompt",
        {"content": "x", "delivery": 5},
        'delivery must be one of "auto", "steer", "followUp", "reject", got 5',
    ),
    ("agent/prompt", {"content": "x", "wait": "yes"}, 'wait must be true or false, got "yes"'),
    ("agent/prompt", {"content": "x", "wait": 1}, "wait must be true or false, got 1"),
    ("agent/prompt", {"content": "x", "session": ["s"]}, "session must be a string, got a list"),
    (
        "agent/prompt",
        {"content": "x", "messageId": ""},
        'messageId must have at least 1 character, got ""',
    ),
    (
        "agent/prompt",
        {"content": "x", "workDoneToken": True},
        "workDoneToken must be a whole number or a string, got true",
    ),
    (
        "agent/prompt",
        {"content": "x", "context": {"open": ["file:///a", 3]}},
        "context.open[1] must be a string, got 3",
    ),
    (
        "agent/prompt",
        {"content": "x", "expectedRun": {"id": "r"}},
        "expectedRun must be a string, got an object",
    ),
    (
        "agent/session/open",
        {"config": {"budgets": {"usd": float("nan")}}},
        "config.budgets.usd must be a finite number, got nan",
    ),
    ("agent/prompt", [1], "params must be an object, got a list"),
    ("agent/prompt", "hello", 'params must be an object, got "hello"'),
    (
        "agent/prompt",
        {"content": "x", "session": {"a" * 200: 1}},
        "session must be a string, got an object",
    ),
    (
        "agent/subscribe",
        {"partialResultToken": 1, "flushMs": 3},
        "flushMs must be at least 16, got 3",
    ),
    (
        "agent/subscribe",
        {"partialResultToken": 1, "flushMs": 251},
        "flushMs must be at most 250, got 251",
    ),
    (
        "agent/subscribe",
        {"partialResultToken": 1, "from": -1},
        "from must be at least 0, got -1",
    ),
    ("agent/ack", {"token": "t", "seq": 1.5}, "seq must be a whole number, got 1.5"),
    (
        "agent/ack",
        {"token": "t", "seq": 2**300},
        "seq must be at most 9007199254740991, got a very large number",
    ),
    (
        "agent/run/cancel",
        {"scope": "item"},
        'params must have an item for scope "item", got an object',
    ),
    ("agent/session/configure", {}, "set must be given, got nothing"),
    (
        "agent/session/configure",
        {"set": {"tools": 3}},
        "set.tools must be a string or a list, got 3",
    ),
    (
        "agent/session/configure",
        {"set": {"model": ""}},
        'set.model must have at least 1 character, got ""',
    ),
    (
        "agent/session/configure",
        {"set": {"steering": "some"}},
        'set.steering must be one of "all", "one-at-a-time", got "some"',
    ),
    ("agent/model/cycle", {"direction": 2}, "direction must be one of 1, -1, got 2"),
    (
        "agent/queue/update",
        {"ops": [{"op": "replace", "queueId": "q"}]},
        "ops[0] must have content to replace, got an object",
    ),
    (
        "agent/queue/update",
        {"ops": [{"op": "move", "queueId": "q"}]},
        "ops[0] must have an index to move to, got an object",
    ),
    (
        "agent/changes/resolve",
        {"items": [{"hunk": "h", "file": "f", "action": "accept"}]},
        "items[0] must name exactly one of hunk, file and changeSet, got an object",
    ),
    (
        "agent/permission/rules",
        {"op": "add"},
        "params must have a rule with tool and verdict to add, got an object",
    ),
    (
        "agent/permission/rules",
        {"op": "remove", "rule": {}},
        "params must have a rule with the id to remove, got an object",
    ),
    (
        "agent/question/respond",
        {"request": "q"},
        "params must have either answers or cancelled: true, got an object",
    ),
    (
        "agent/editorContext",
        {
            "open": [],
            "focus": {
                "uri": "file:///a",
                "version": 1,
                "visible": [],
                "selections": [
                    {
                        "start": {"line": -1, "character": 0},
                        "end": {"line": 0, "character": 0},
                    }
                ],
            },
        },
        "focus.selections[0].start.line must be at least 0, got -1",
    ),
]


@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    SENTENCES,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(SENTENCES)],
)
def test_one_sentence_says_what_is_wrong(method: str, params: object, sentence: str) -> None:
    with pytest.raises(RpcError) as caught:
        parse(METHODS[method].params, params, method=method)  # pyright: ignore[reportArgumentType] - foreign JSON
    assert (caught.value.code, caught.value.message) == (INVALID_PARAMS, f"{method}: {sentence}")


def test_the_data_says_it_to_a_program() -> None:
    with pytest.raises(RpcError) as caught:
        parse(PromptParams, {"content": [{"type": "text", "text": None}]})
    assert caught.value.message == "PromptParams: content[0].text must be a string, got null"
    assert caught.value.data == {
        "retryable": False,
        "field": "content[0].text",
        "expected": "be a string",
        "actual": "null",
    }


@pytest.mark.parametrize(
    ("given_open", "sentence"),
    [
        ({}, "session.open.id must be given, got nothing"),
        (5, 'session.open must be one of "latest", "new", "none" or an object, got 5'),
        ("last", 'session.open must be one of "latest", "new", "none" or an object, got "last"'),
    ],
)
def test_a_choice_of_shapes_is_named(given_open: object, sentence: str) -> None:
    with pytest.raises(RpcError) as caught:
        parse(AgentOptions, {"session": {"open": given_open}})
    assert caught.value.message == f"AgentOptions: {sentence}"


def test_long_values_and_deep_places_are_cut_short() -> None:
    with pytest.raises(RpcError) as caught:
        parse(PromptParams, {"content": "x", "wait": "a" * 10_000})
    assert len(caught.value.message) < 200
    deep: object = 1
    for _ in range(50):
        deep = {"set": deep}
    with pytest.raises(RpcError) as caught:
        parse(ConfigureParams, {"set": {"tools": [deep]}})
    assert caught.value.message == "ConfigureParams: set.tools[0] must be a string, got an object"


def test_foreign_json_is_taken_as_it_is() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    read = parse(METHODS["agent/lsp/request"].params, {"method": "m", "params": deep})
    assert vars(read)["params"] is deep


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    [
        ("agent/prompt", {"content": [0] * 1_000_000}, "content must have at most 1000 entries"),
        ("agent/prompt", {"content": ["x"] * 1_000_000}, "content must have at most 1000 entries"),
        ("agent/editorContext", {"open": [0] * 1_000_000}, "open[0] must be a string, got 0"),
        (
            "agent/queue/update",
            {"ops": [{}] * 1_000_000},
            "ops[0].op must be given, got nothing",
        ),
        (
            "agent/question/respond",
            {"request": "q", "answers": {str(n): 0 for n in range(100_000)}},
            "answers must have at most 1000 entries, got an object",
        ),
    ],
    ids=["wrong blocks", "too many blocks", "wrong strings", "empty objects", "wrong answers"],
)
def test_a_million_wrong_entries_cost_no_more_than_one(
    method: str, params: dict, sentence: str
) -> None:
    with pytest.raises(RpcError) as caught:
        parse(METHODS[method].params, params, method=method)
    assert caught.value.message.startswith(f"{method}: {sentence}")


def test_line_breaks_and_broken_unicode_stay_out_of_the_sentence() -> None:
    for word in ("a\nb", "\ud800", "\x1b[31m"):
        with pytest.raises(RpcError) as caught:
            parse(PromptParams, {"content": "x", "delivery": word})
        assert caught.value.message.isprintable()
        caught.value.message.encode("utf-8")


def test_lone_surrogates_in_plain_text_pass() -> None:
    read = parse(PromptParams, {"content": "\ud800"})
    assert read.content == parse(PromptParams, {"content": ["\ud800"]}).content


def test_a_rule_that_is_whole_passes() -> None:
    read = parse(PermissionRulesParams, {"op": "add", "rule": {"tool": "bash", "verdict": "allow"}})
    assert read.rule is not None


def test_a_list_is_no_object() -> None:
    with pytest.raises(RpcError, match=r"set must be an object, got a list"):
        parse(ConfigureParams, {"set": [1]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    sorted(
        {
            wire_field
            for method in METHODS.values()
            for wire_field in (
                field.alias or name for name, field in method.params.model_fields.items()
            )
        }
    )
)


@given(
    method=st.sampled_from(sorted(METHODS)),
    params=st.dictionaries(FIELDS, JSON, max_size=6) | JSON,
)
@example(method="agent/status", params={"\n": 0})
def test_whatever_comes_is_read_or_refused_in_one_line(method: str, params: object) -> None:
    refused = _refusal(method, params)
    if refused is not None:
        assert refused.code == INVALID_PARAMS
        assert refused.message.startswith(f"{method}: ")
        assert " must " in refused.message
        assert ", got " in refused.message or "the method has no such field" in refused.message
        assert "\n" not in refused.message


def _refusal(method: str, params: object) -> RpcError | None:
    model: type[WireModel] = METHODS[method].params
    try:
        parse(model, params, method=method)  # pyright: ignore[reportArgumentType] - foreign JSON
    except RpcError as error:
        return error
    return None
