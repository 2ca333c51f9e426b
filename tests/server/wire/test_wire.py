"""The vocabulary as a whole: its tables, its names, what reading and writing promise."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from agent_core.events import Delta
from agent_core.events.codec import NAMES as EVENT_NAMES
from tiller_server.lsp import wire
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.wire.accounts import StatusParams
from tiller_server.lsp.wire.base import dump
from tiller_server.lsp.wire.blocks import TextBlock
from tiller_server.lsp.wire.capabilities import AgentClientCaps, merge_capabilities
from tiller_server.lsp.wire.errors import ERROR_KINDS, ERROR_MEANINGS, ErrorData, KilledProcess
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.parsing import parse, prepare
from tiller_server.lsp.wire.runs import PromptAccepted, PromptParams, RunCancelResult
from tiller_server.lsp.wire.session import ConfigChange, History, SessionInfo
from tiller_server.lsp.wire.sessions import SessionLabelParams

PACKAGE = Path(wire.__file__).parent

ASKED = """
agent/session/open agent/session/list agent/session/read agent/session/configure agent/session/fork
agent/session/close agent/session/delete agent/session/export agent/subscribe agent/prompt
agent/queue/update agent/run/cancel agent/run/retry agent/compact agent/changes/list
agent/changes/resolve agent/checkpoint/list agent/checkpoint/preview agent/checkpoint/restore
agent/permission/respond agent/permission/rules agent/question/respond agent/tools/register
agent/status agent/steer agent/followUp agent/session/tree agent/session/navigate
agent/session/label agent/session/rename agent/session/stats agent/blob/read agent/blob/store agent/model/list agent/model/cycle
agent/thinking/cycle agent/bash agent/plan/respond agent/background/move agent/background/stop agent/task/resume agent/task/stop agent/task/changes agent/task/merge agent/task/discard agent/command/list agent/command/complete agent/resources/reload
agent/extension/list agent/extension/press agent/extension/render
agent/review agent/auth/status agent/auth/login agent/auth/logout agent/costs
"""
TOLD = "agent/ack agent/editorContext agent/trust"
ASKING = """
agent/permission agent/question agent/edit/apply agent/documents/save agent/documents/read
agent/file/read agent/file/write agent/diagnostics agent/lsp/request
"""
TELLING = "agent/changes/show"


def test_every_method_of_the_protocol_is_in_the_table_and_no_other() -> None:
    found = {(name, method.kind, method.direction) for name, method in METHODS.items()}
    assert found == {
        (name, kind, direction)
        for names, kind, direction in (
            (ASKED, "request", "client→server"),
            (TOLD, "notification", "client→server"),
            (ASKING, "request", "server→client"),
            (TELLING, "notification", "server→client"),
        )
        for name in names.split()
    }


def test_a_method_without_needs_takes_empty_params() -> None:
    assert parse(StatusParams, None) == parse(StatusParams, {}) == StatusParams()


def test_error_kinds_are_the_closed_list() -> None:
    assert set(ERROR_MEANINGS) == set(ERROR_KINDS)
    assert len(ERROR_KINDS) == len(set(ERROR_KINDS)) == 29
    with pytest.raises(RpcError, match="kind must be one of"):
        parse(ErrorData, {"kind": "_mine", "retryable": False})


def test_importing_the_package_loads_no_shape() -> None:
    code = (
        "import sys, tiller_server.lsp.wire\n"
        "loaded = [n for n in sys.modules if n.startswith('tiller_server.lsp.wire.') or n == 'pydantic']\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parents[2],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_prompting_loads_neither_events_nor_tables() -> None:
    code = (
        "import sys\n"
        "from tiller_server.lsp.wire.runs import PromptParams\n"
        "heavy = {'events', 'methods', 'catalogue', 'sessions'}\n"
        "loaded = [n for n in heavy if f'tiller_server.lsp.wire.{n}' in sys.modules]\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parents[2],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_unknown_fields_are_ignored_and_snake_case_is_unknown() -> None:
    read = parse(PromptParams, {"content": "x", "message_id": "m", "if_idle": "hold", "zzz": [1]})
    assert read == PromptParams(content=[TextBlock(text="x")])


def test_words_of_vendors_are_kept() -> None:
    read = parse(PromptParams, {"content": "x", "delivery": "_whisper"})
    assert read.delivery == "_whisper"
    assert dump(read)["delivery"] == "_whisper"


def test_null_for_an_optional_field_is_the_same_as_leaving_it_out() -> None:
    assert parse(PromptParams, {"content": "x", "session": None, "wait": None}) == parse(
        PromptParams, {"content": "x"}
    )


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        ["hello"],
        {"type": "text", "text": "hello"},
        [{"type": "text", "text": "hello"}],
    ],
    ids=["bare", "list of bare", "one block", "list of blocks"],
)
def test_bare_words_become_a_text_block(content: object) -> None:
    assert parse(PromptParams, {"content": content}).content == [TextBlock(text="hello")]


def test_what_may_be_left_out_is_not_written() -> None:
    assert dump(PromptAccepted(accepted="queued", queue_id="q1", seq=4)) == {
        "accepted": "queued",
        "queueId": "q1",
        "seq": 4,
    }


def test_null_is_written_where_it_means_clear() -> None:
    assert dump(History(cursor=None)) == {"cursor": None}
    assert dump(parse(SessionLabelParams, {"entry": "e", "label": None})) == {
        "entry": "e",
        "label": None,
    }
    assert dump(parse(ConfigChange, {"budgets": None, "model": None})) == {"budgets": None}


def test_nested_shapes_are_written_whole() -> None:
    result = RunCancelResult(
        status="cancelled",
        seq=9,
        killed=[KilledProcess(pid=7, cmd="sleep 600")],
        survivors=[],
        returned=[[TextBlock(text="later")]],
    )
    assert dump(result) == {
        "status": "cancelled",
        "seq": 9,
        "killed": [{"pid": 7, "cmd": "sleep 600"}],
        "survivors": [],
        "returned": [[{"type": "text", "text": "later"}]],
    }


def test_shapes_cannot_be_changed() -> None:
    read = parse(PromptParams, {"content": "x"})
    with pytest.raises(ValueError, match="frozen"):
        read.session = "s"


def test_capabilities_are_joined_and_experimental_wins() -> None:
    joined = merge_capabilities(
        {"v": 1, "edit": {"save": {}}, "events": {"detail": ["full"]}},
        {"v": 0, "edit": {"preconditions": {}}, "notice": {}, "events": {"detail": ["status"]}},
    )
    assert joined == {
        "v": 1,
        "edit": {"preconditions": {}, "save": {}},
        "events": {"detail": ["full"]},
        "notice": {},
    }
    assert dump(parse(AgentClientCaps, joined)) == joined
    assert merge_capabilities(None, None) == {}


def test_deltas_are_the_events_that_append() -> None:
    assert {EVENT_NAMES[event] for event in get_args(Delta)} == {
        "message.delta",
        "thought.delta",
        "tool.input.delta",
        "tool.output.delta",
        "bash.output",
    }


def test_preparing_changes_nothing_but_the_time() -> None:
    prepare(SessionInfo, PromptParams)
    with pytest.raises(RpcError) as caught:
        parse(PromptParams, {}, method="agent/prompt")
    assert caught.value.code == INVALID_PARAMS
