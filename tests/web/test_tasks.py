"""The task API: what a script does with it, from the prompt to the end, and through the end of the processes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.clients.browsers import (
    Json,
    Site,
    ask,
    events_of,
    following as following_sessions,
    served,
)
from tests.support.clients.server import Ground, calls, says

pytestmark = [pytest.mark.timeout(60)]


async def create(script: httpx.AsyncClient, prompt: str = "go", **more: Any) -> Json:
    """Create a task and return its ids."""
    answer = await script.post("/api/tasks", json={"prompt": prompt, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/tasks/{answer.json()['task']}"
    return answer.json()


async def get(script: httpx.AsyncClient, task: str) -> Json:
    """Return the state of a task."""
    answer = await script.get(f"/api/tasks/{task}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def until(script: httpx.AsyncClient, created: Json, type_: str) -> list[Json]:
    """Follow the events of a task up to one of a type; return all."""
    events: list[Json] = []
    async with script.stream("GET", f"/api/sse?tasks={created['task']}") as answer:
        assert answer.status_code == 200, answer.status_code
        async with following_sessions(script, [created["session"]]) as stream:
            while (heard := await stream.next()) is not None:
                snapshot = heard.frame.get("snapshot")
                if snapshot is not None and type_ == "run.ended" and "run" not in snapshot:
                    return events
                events += events_of([heard])
                if any(one["type"] == type_ for one in events):
                    return events
    raise AssertionError(type_)


async def test_a_task_is_created_done_and_listed(ground: Ground) -> None:
    ground.provider.script([says("the answer"), says("again")])
    async with served(ground) as site, site.script() as script:
        first = await create(script, "What is the answer?")
        assert first["run"]
        await until(script, first, "run.ended")
        task = await get(script, first["task"])
        created = task.pop("createdAt")
        assert created.endswith("Z")
        assert task == {
            **first,
            "state": "done",
            "reason": None,
            "prompt": "What is the answer?",
            "answer": "the answer",
        }
        second = await create(script, "And now?", session=first["session"])
        await until(script, second, "run.ended")
        newest = (await script.get("/api/tasks?limit=1")).json()
        assert [one["task"] for one in newest["tasks"]] == [second["task"]]
        oldest = (await script.get(f"/api/tasks?limit=1&cursor={newest['next']}")).json()
        assert [one["task"] for one in oldest["tasks"]] == [first["task"]]
        assert oldest["next"] is None
        assert oldest["tasks"][0]["answer"] is None
        assert second["session"] == first["session"]


async def test_a_repeat_with_the_same_key_is_the_same_task(ground: Ground) -> None:
    ground.provider.script([says("once")])
    async with served(ground) as site, site.script() as script:
        script.headers["idempotency-key"] = "k-1"
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(create(script)) for _ in range(3)]
        repeats = [one.result() for one in asked]
        assert repeats[0] == repeats[1] == repeats[2]
        other = await script.post("/api/tasks", json={"prompt": "another"})
        assert other.status_code == 422
        await until(script, repeats[0], "run.ended")
        assert await create(script) == repeats[0]
        assert len((await script.get("/api/tasks")).json()["tasks"]) == 1
    async with served(ground) as site, site.script() as script:
        script.headers["idempotency-key"] = "k-1"
        assert await create(script) == repeats[0]
    assert len(ground.provider.requests) == 1


async def test_a_task_waits_for_a_person_and_is_cancelled(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    async with served(ground) as site, site.script() as script:
        created = await create(script)
        await until(script, created, "permission.requested")
        task = await get(script, created["task"])
        assert (task["state"], task["run"]) == ("waiting", created["run"])
        assert task["reason"].startswith("A permission is needed: ")
        assert "touch x" in task["reason"]
        queued = await create(script, "then this", session=created["session"])
        waiting = await get(script, queued["task"])
        assert (waiting["state"], waiting["prompt"]) == ("queued", "then this")
        for id_ in (queued["task"], created["task"], created["task"]):
            answer = await script.post(f"/api/tasks/{id_}/cancel", json={})
            assert answer.status_code == 200
            assert answer.json()["state"] == "cancelled", answer.text
        assert (await get(script, queued["task"]))["reason"].startswith("The prompt was removed")
    assert not (ground.root / "x").exists()


async def test_a_run_that_failed_gives_its_reason(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0})
    ground.provider.script([{"status": 400, "body": {"error": {"message": "no such thing"}}}])
    async with served(ground) as site, site.script() as script:
        created = await create(script)
        await until(script, created, "run.ended")
        task = await get(script, created["task"])
        assert task["state"] == "failed"
        assert "no such thing" in task["reason"]


async def test_the_stream_is_that_of_the_tasks_and_resumes(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with served(ground) as site, site.script() as script:
        created = await create(script)
        await until(script, created, "run.ended")
        path = f"/api/sse?tasks={created['task']}"
        last = ""
        async with script.stream("GET", path) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    last = line.removeprefix("id: ")
                    break
        again = await create(script, session=created["session"])
        await until(script, again, "run.ended")
        text = ""
        async with script.stream("GET", path, headers={"last-event-id": last}) as answer:
            async for line in answer.aiter_lines():
                text += line
                if "run.ended" in line:
                    break
        assert "two" in text
        assert "event: snapshot" not in text
        assert (await script.get("/api/sse")).status_code == 204
        assert (await script.get("/api/sse?tasks=task-none")).status_code == 204


async def test_an_observer_reads_and_creates_nothing(ground: Ground) -> None:
    ground.provider.script([says("once")])
    async with served(ground) as site, site.script() as script:
        created = await create(script)
        await until(script, created, "run.ended")
    async with served(ground, role="observer") as site, site.script() as script:
        assert (await get(script, created["task"]))["state"] == "done"
        for path, body in (
            ("/api/tasks", {"prompt": "x"}),
            (f"/api/tasks/{created['task']}/cancel", {}),
        ):
            answer = await script.post(path, json=body)
            assert answer.status_code == 403
            assert "observer" in answer.json()["error"]["message"]
    async with served(ground, role="approver") as site, site.script() as script:
        assert (await script.post("/api/tasks", json={"prompt": "x"})).status_code == 403
        answer = await script.post(f"/api/tasks/{created['task']}/cancel", json={})
        assert answer.json()["state"] == "done"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 400, "prompt"),
        ({"prompt": ""}, 400, "$.prompt"),
        ({"prompt": 1}, 400, "$.prompt"),
        ({"prompt": "x", "promt": "y"}, 400, "promt"),
        ({"prompt": "x", "mode": "loose"}, 400, "$.mode"),
        ({"prompt": "x", "mode": "yolo"}, 403, "yolo"),
        ({"prompt": "x", "workspace": "project"}, 400, "absolute"),
        ({"prompt": "x", "workspace": "/nowhere/at/all"}, 400, "/nowhere/at/all"),
        ({"prompt": "x", "session": "latest"}, 400, "session must be an id"),
        ({"prompt": "x", "session": "s-none"}, 404, "s-none"),
        ({"prompt": "x", "session": "s", "title": "t"}, 400, "title"),
        ({"prompt": "x", "model": "nobody/nothing"}, 409, "nobody/nothing"),
        ({"prompt": "x", "thinking": "hard"}, 400, "thinking"),
    ],
)  # fmt: skip
async def test_a_request_that_cannot_be_done_is_refused_in_one_sentence(
    ground: Ground, body: Json, status: int, said: str
) -> None:
    async with served(ground) as site, site.script() as script:
        answer = await script.post("/api/tasks", json=body)
        assert answer.status_code == status, answer.text
        assert said in answer.json()["error"]["message"]
        assert (await script.get("/api/tasks")).json() == {"tasks": [], "next": None}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/tasks/task-none", 404),
        ("/api/tasks?limit=0", 400),
        ("/api/tasks?limit=101", 400),
        ("/api/tasks?limit=x", 400),
        ("/api/tasks?cursor=task-none", 400),
        ("/api/tasks?other=1", 400),
        (f"/api/sse?tasks={','.join(f't{one}' for one in range(33))}", 400),
        ("/api/sse?sessions=a", 400),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused(
    ground: Ground, path: str, status: int
) -> None:
    async with served(ground) as site, site.script() as script:
        answer = await script.get(path)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\there"])
async def test_a_key_that_is_none_is_refused(ground: Ground, key: str) -> None:
    async with served(ground) as site, site.script() as script:
        answer = await script.post(
            "/api/tasks", json={"prompt": "x"}, headers={"idempotency-key": key}
        )
        assert answer.status_code == 400


async def described(site: Site) -> Json:
    """Return the OpenAPI document."""
    async with site.script() as script:
        return (await script.get("/api/openapi.json")).json()


def schema_of(document: Json, path: str, method: str, status: str) -> Draft202012Validator:
    """Return a validator of an answer."""
    answer = document["paths"][path][method]["responses"][status]
    schema = answer["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]})


async def test_the_document_is_valid_and_describes_every_route_and_its_answers(
    ground: Ground,
) -> None:
    ground.provider.script([says("hello")])
    async with served(ground) as site, site.script() as script:
        document = await described(site)
        OpenAPIV31SpecValidator(document).validate()
        offered = {
            (one.path, next(iter({"POST", "GET"} & (one.methods or set()))).lower())
            for one in site.server.guard.routes
            if one.path.startswith("/api/")
        }
        assert {(path, one) for path, ways in document["paths"].items() for one in ways} == offered
        created = await create(script)
        await until(script, created, "run.ended")
        task = f"/api/tasks/{created['task']}"
        answers: Mapping[tuple[str, str, str], Json] = {
            ("/api/tasks", "post", "201"): created,
            ("/api/tasks", "get", "200"): (await script.get("/api/tasks")).json(),
            ("/api/tasks/{id}", "get", "200"): (await script.get(task)).json(),
            ("/api/tasks/{id}", "get", "default"): (await script.get("/api/tasks/x")).json(),
            ("/api/tasks/{id}/cancel", "post", "200"): (
                await script.post(f"{task}/cancel", json={})
            ).json(),
        }
        for (path, method, status), answer in answers.items():
            validator = schema_of(document, path, method, status)
            validator.validate(answer)
            assert not validator.is_valid({}), path


COMMAND = """
def extension(api):
    @api.command()
    def greet(words, ctx):
        ctx.ui.notify(words)
"""


async def test_a_command_of_an_extension_is_done_at_once(ground: Ground) -> None:
    path = ground.dirs.config / "extensions" / "greets.py"
    path.parent.mkdir(parents=True)
    path.write_text(COMMAND, encoding="utf-8")
    async with served(ground) as site, site.script() as script:
        script.headers["idempotency-key"] = "k-1"
        created = await create(script, "/greet you")
        assert created["run"] is None
        task = await get(script, created["task"])
        assert (task["state"], task["reason"]) == (
            "done",
            "A command of an extension handled the prompt.",
        )
        assert await create(script, "/greet you") == created


async def test_a_task_whose_session_was_deleted_has_failed(
    ground: Ground,
) -> None:
    ground.provider.script([says("hello")])
    async with served(ground) as site, site.script() as script:
        created = await create(script)
        await until(script, created, "run.ended")
    for path in ground.sessions():
        path.unlink()
    async with served(ground) as site, site.script() as script:
        task = await get(script, created["task"])
        assert (task["state"], task["reason"]) == ("failed", "The session was deleted.")
        answer = await script.post(
            "/api/tasks", json={"prompt": "x", "session": created["session"]}
        )
        assert answer.status_code == 404
        result = await ask(script, "agent/session/list")
        assert result["result"]["sessions"] == []
