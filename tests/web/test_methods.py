"""What a role may ask for, and what no browser may."""

import json
from typing import Any

import pytest

from tests.support.clients.browsers import ask, events_of, following, opened, served
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.harness.shared import ROOT
from tiller_server.web.methods import METHODS, ROLES, Role, objection

pytestmark = [pytest.mark.timeout(60)]

SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "server/tiller_server/lsp/wire/schema.json").read_text("utf-8")
)
NEVER = (
    "agent/auth/",
    "agent/documents/",
    "agent/edit/",
    "agent/file/",
    "agent/trust",
    "agent/permission/rules",
    "agent/bash",
    "agent/blob/store",
    "agent/tools/",
    "agent/lsp/",
    "agent/subscribe",
    "workspace/",
    "textDocument/",
    "shutdown",
    "initialize",
)


def fields_of(method: str) -> dict[str, Any]:
    """Return the fields of the params of a method."""
    name = SCHEMA["methods"][method]["params"]["$ref"].rpartition("/")[2]
    return SCHEMA["$defs"][name].get("properties", {})


def test_what_is_served_exists_and_names_its_session() -> None:
    for method, served_ in METHODS.items():
        assert not method.startswith(NEVER), method
        assert SCHEMA["methods"][method]["kind"] == "request", method
        assert ("session" in fields_of(method)) == served_.needs_session, method


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_refused_what_is_above_it(role: Role) -> None:
    for method in SCHEMA["methods"]:
        refusal = objection(method, {"session": "s-1"}, role=role, asked={})
        allowed = method in METHODS and ROLES.index(METHODS[method].role) <= ROLES.index(role)
        assert (refusal is None) == allowed, method
    assert objection("agent/nothing", {}, role=role, asked={}) is not None


@pytest.mark.parametrize("role", ROLES)
async def test_an_answer_names_the_role(ground: Ground, role: Role) -> None:
    async with served(ground, role=role) as site, site.script() as script:
        for method in ("agent/session/list", "agent/nothing"):
            answer = await script.post("/v1/rpc", json={"method": method, "params": {}})
            assert answer.headers["tiller-role"] == role


async def test_a_long_answer_is_compressed_where_that_is_taken(ground: Ground) -> None:
    ground.provider.script([says("long " * 8000)])
    async with served(ground) as site, site.script() as script:
        session = (await opened(script))["session"]
        async with following(script, [session]) as stream:
            await ask(script, "agent/prompt", session=session, **prompt("go"))
            while one := await stream.next():
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    break
        body = {"method": "agent/session/read", "params": {"session": session}}
        zipped = await script.post("/v1/rpc", json=body)
        plain = await script.post("/v1/rpc", json=body, headers={"accept-encoding": "identity"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) < len(plain.content) // 10
    assert "content-encoding" not in plain.headers
    assert zipped.json() == plain.json()


def test_a_mode_without_questions_is_set_nowhere_in_a_browser() -> None:
    for method, params in (
        ("agent/session/configure", {"session": "a", "set": {"mode": "yolo"}}),
        ("agent/session/open", {"session": "a", "config": {"mode": "yolo"}}),
    ):
        refusal = objection(method, params, role="operator", asked={})
        assert refusal is not None
        assert refusal.kind == "PermissionDenied"
    fine = {"session": "a", "set": {"mode": "plan"}}
    assert objection("agent/session/configure", fine, role="operator", asked={}) is None


@pytest.mark.parametrize("field", ["wait", "partialResultToken", "workDoneToken"])
def test_nothing_binds_a_run_to_an_http_request(field: str) -> None:
    params = {"session": "a", "content": "hi", field: True}
    assert objection("agent/prompt", params, role="operator", asked={}) is not None


OPTIONS = [
    {"id": kind, "kind": kind, "label": kind}
    for kind in ("allowOnce", "allowProject", "allowUser", "rejectOnce", "rejectAlways")
] + [{"id": "o-9", "kind": "allowUser", "label": "everywhere"}]


@pytest.mark.parametrize(
    ("subject", "answer", "is_refused"),
    [
        ("command", {"option": "allowOnce"}, False),
        ("command", {"option": "allowProject"}, False),
        ("command", {"option": "allowUser"}, True),
        ("command", {"option": "o-9"}, True),
        ("command", {"option": "allowOnce", "scope": "user"}, True),
        ("command", {"option": "allowOnce", "scope": "project"}, False),
        ("trust", {"option": "allowProject"}, True),
        ("trust", {"option": "rejectAlways"}, True),
        ("trust", {"option": "rejectOnce"}, False),
        ("trust", {"option": "nonsense"}, True),
        ("server", {"option": "allowProject"}, True),
        ("server", {"option": "rejectOnce"}, False),
    ],
)
def test_an_answer_gives_no_more_than_the_project(
    subject: str, answer: dict[str, str], is_refused: bool
) -> None:
    asked = {"p-1": {"request": "p-1", "subject": {"type": subject}, "options": OPTIONS}}
    params = {"request": "p-1", **answer}
    refusal = objection("agent/permission/respond", params, role="approver", asked=asked)
    assert (refusal is not None) == is_refused


async def test_an_observer_sees_and_decides_nothing(ground: Ground) -> None:
    ground.provider.script([says("done")])
    async with served(ground, role="operator") as site, site.script() as script:
        session = (await opened(script))["session"]
        async with following(script, [session]) as stream:
            await ask(script, "agent/prompt", session=session, **prompt("go"))
            while (one := await stream.next()) is not None:
                if any(event["type"] == "run.ended" for event in one.frame.get("events", [])):
                    break
    async with served(ground, role="observer") as site, site.script() as script:
        listed = (await ask(script, "agent/session/list"))["result"]["sessions"]
        assert [one["session"] for one in listed] == [session]
        seen = (await ask(script, "agent/session/open", session=session))["result"]
        assert [one["role"] for one in seen["clients"]] == ["observer"]
        for method, params in (
            ("agent/prompt", {"session": session, "content": "hi"}),
            ("agent/run/cancel", {"session": session}),
            ("agent/session/open", {"session": "new"}),
            ("agent/session/open", {"session": session, "title": "mine"}),
            ("agent/permission/respond", {"request": "p-1", "option": "allowOnce"}),
        ):
            error = (await ask(script, method, **params))["error"]
            assert error["data"]["kind"] == "PermissionDenied", method


async def test_a_trust_request_is_not_answered_in_a_browser(ground: Ground) -> None:
    ground.configure(defaultProjectTrust="ask", sandbox="off", permission={"mode": "ask"})
    ground.file("AGENTS.md", "obey\n")
    ground.provider.script([calls(("ls", {})), says("done")])
    async with served(ground) as site, site.script() as script:
        session = (await opened(script))["session"]
        async with following(script, [session]) as stream:
            await ask(script, "agent/prompt", session=session, **prompt("go"))
            while (one := await stream.next()) is not None:
                for event in one.frame.get("events", []):
                    if event["type"] == "permission.requested":
                        assert event["request"]["subject"]["type"] == "trust"
                        request = event["request"]["request"]
                        answer = await ask(
                            script,
                            "agent/permission/respond",
                            request=request,
                            option="allowProject",
                        )
                        assert "tiller trust add" in answer["error"]["message"]
                        answer = await ask(
                            script, "agent/permission/respond", request=request, option="rejectOnce"
                        )
                        assert answer["result"]["status"] == "recorded"
                if any(event["type"] == "run.ended" for event in one.frame.get("events", [])):
                    break
        snapshot = (await ask(script, "agent/session/open", session=session))["result"]
        assert [one["trusted"] for one in snapshot["trust"]] == [False]
