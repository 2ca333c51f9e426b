"""`tiller web` as a process: starts the daemon, survives it, and leaves runs to it; who does not want it loads nothing of it."""

import asyncio
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.clients.browsers import WITHIN_S, ask, events_of, following, opened
from tests.support.clients.daemons import daemon_process, log_of
from tests.support.clients.server import TILLER, Ground, prompt, says
from tests.support.harness.shared import ROOT
from tests.web.conftest import ANYWHERE, PUBLIC_NAME
from tiller_server.daemon import paths
from tiller_server.daemon.lockfile import owner
from tiller_server.process.web_servers import web_servers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no daemon"),
]

START_S = 60.0


def script_of(ground: Ground, origin: str) -> httpx.AsyncClient:
    """Return a client with the token of scripts."""
    file = Path(paths.runtime_folder(ground.env), f"web-{origin.rpartition(':')[2]}.token")
    token = file.read_text("utf-8").strip()
    headers = {"authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=origin, headers=headers, timeout=START_S)


def tokens(ground: Ground) -> list[Path]:
    """Return the files of servers: the token of scripts, and how each is reached."""
    return [*Path(paths.runtime_folder(ground.env)).glob("web-*")]


@asynccontextmanager
async def tiller_web(ground: Ground, *words: str) -> AsyncGenerator[tuple[str, httpx.AsyncClient]]:
    """Start the command; yield the URL that it prints, and a client of a script. It is ended by SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        *TILLER, "web", "--no-open", *words,
        cwd=ground.root, env=dict(ground.env), stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            url = (await process.stdout.readline()).decode().strip()
        origin = url.partition("/?")[0]
        async with asyncio.timeout(START_S):
            await answers(origin)
        async with script_of(ground, origin) as client:
            yield url, client
    finally:
        process.terminate()
        async with asyncio.timeout(WITHIN_S):
            await process.wait()
    assert tokens(ground) == []


async def answers(origin: str) -> None:
    """Wait until the port answers."""
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=20)) as client:
        assert (await client.get(f"{origin}/healthz")).status_code == 204


def end_daemon(ground: Ground, number: signal.Signals = signal.SIGTERM) -> None:
    """End the daemon that runs."""
    holder = owner(Path(paths.lock_path(ground.env)))
    if holder is not None and isinstance(pid := holder.get("pid"), int):
        os.kill(pid, number)


async def go_on(client: httpx.AsyncClient, session: str, *, last: str, texts: list[str]) -> None:
    """Send a prompt to whichever daemon there is, and collect what is said until its run has ended."""
    mine: str | None = None
    while True:
        async with following(client, [session], last=last) as stream:
            if mine is None:
                words = prompt("again", messageId="m-again")
                accepted = await ask(client, "agent/prompt", session=session, **words)
                mine = accepted.get("result", {}).get("run")
            while (one := await stream.next()) is not None:
                last = one.id
                events = events_of([one])
                texts += [e["content"][0]["text"] for e in events if e["type"] == "message.ended"]
                if any(e["type"] == "run.ended" and e["run"] == mine for e in events):
                    return


async def test_a_daemon_is_started_and_one_that_was_killed_is_replaced(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    try:
        async with tiller_web(ground) as (url, client):
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", url)
            session = (await opened(client))["session"]
            async with following(client, [session]) as stream:
                await ask(client, "agent/prompt", session=session, **prompt("go"))
                last = ""
                while (one := await stream.next()) is not None:
                    last = one.id
                    if any(event["type"] == "run.ended" for event in events_of([one])):
                        end_daemon(ground, signal.SIGKILL)
            # The stream has ended with the daemon; as an EventSource does, the reader asks again until there is another.
            texts: list[str] = []
            await asyncio.wait_for(go_on(client, session, last=last, texts=texts), START_S)
            assert texts[-1] == "two"
    finally:
        end_daemon(ground)


async def test_a_run_goes_on_when_the_browser_and_the_command_have_gone(ground: Ground) -> None:
    ground.provider.script([{"text": "slowly but surely", "delay_s": 0.5}])
    async with daemon_process(ground.env):
        async with tiller_web(ground) as (_, client):
            session = (await opened(client))["session"]
            accepted = await ask(client, "agent/prompt", session=session, **prompt("go"))
            assert accepted["result"]["accepted"] == "started"
        async with tiller_web(ground, "--role", "observer") as (_, client):
            async with following(client, [session]) as stream:
                first = await stream.next()
                assert first is not None
                snapshot = first.frame["snapshot"]
                heard = [first]
                while "run" in snapshot and not any(
                    event["type"] == "run.ended" for event in events_of(heard[-1:])
                ):
                    one = await stream.next()
                    assert one is not None
                    heard.append(one)
            items = (await ask(client, "agent/session/read", session=session))["result"]["items"]
            assert items[-1]["content"][0]["text"] == "slowly but surely"
    assert "Traceback" not in log_of(ground.env)


async def task_state(client: httpx.AsyncClient, task: str) -> dict[str, str]:
    """Return a task."""
    answer = await client.get(f"/api/tasks/{task}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_task_outlives_the_command_and_its_state_the_daemon(ground: Ground) -> None:
    ground.provider.script([{"text": "slowly", "delay_s": 0.5}, {"text": "never", "delay_s": 60}])
    try:
        async with daemon_process(ground.env):
            async with tiller_web(ground) as (_, client):
                first = (await client.post("/api/tasks", json={"prompt": "one"})).json()
            # The run goes on without it.
            async with tiller_web(ground) as (_, client):
                async with client.stream("GET", f"/api/sse?tasks={first['task']}") as stream:
                    async for line in stream.aiter_lines():
                        if "run.ended" in line or '"state":"idle"' in line:
                            break
                assert (await task_state(client, first["task"]))["answer"] == "slowly"
                second = (await client.post("/api/tasks", json={"prompt": "two"})).json()
                assert (await task_state(client, second["task"]))["state"] == "running"
                end_daemon(ground, signal.SIGKILL)
                async with asyncio.timeout(START_S):
                    task = second
                    while task.get("state") != "failed":
                        task = await task_state(client, second["task"])
                assert task["reason"] == "The run was interrupted by the end of its process."
        async with tiller_web(ground, "--role", "observer") as (_, client):
            assert (await task_state(client, second["task"])) == task
            assert (await task_state(client, first["task"]))["state"] == "done"
    finally:
        end_daemon(ground)


async def shared(ground: Ground, *words: str) -> tuple[int, str, str]:
    """Run `tiller share` to its end, without a terminal; return the exit code and both outputs."""
    process = await asyncio.create_subprocess_exec(
        *TILLER, "share", *words,
        cwd=ground.root, env=dict(ground.env), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(START_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    assert "Traceback" not in err.decode()
    return process.returncode, out.decode(), err.decode()


async def test_a_session_is_shared_from_the_terminal(ground: Ground) -> None:
    ground.provider.script([says("hello")])
    async with daemon_process(ground.env), tiller_web(ground) as (_, client):
        created = (await client.post("/api/tasks", json={"prompt": "Say hello"})).json()
        task = created
        while task.get("state") != "done":
            task = await task_state(client, created["task"])
        session = created["session"]
        refused = await shared(ground, session)
        assert (refused[0], refused[1]) == (2, "")
        assert "add --yes" in refused[2]
        assert "secrets that are replaced: none" in refused[2]
        code, out, err = await shared(ground, session[-8:], "--expires", "30m", "--yes")
        assert code == 0, err
        async with httpx.AsyncClient() as browser:
            assert "Say hello" in (await browser.get(out.strip())).text
            listed = await shared(ground, "--list")
            share, state = listed[1].split()[:2]
            assert state == "active"
            assert (await shared(ground, "--revoke", share))[1].split()[1] == "revoked"
            assert (await browser.get(out.strip())).status_code == 410
        for words, code in ((("--revoke", "share-none"), 1), ((session, "--expires", "1y"), 2)):
            assert (await shared(ground, *words))[0] == code


@asynccontextmanager
async def serving_others(ground: Ground, *words: str) -> AsyncGenerator[str]:
    """Start the command for other machines; yield its origin."""
    process = await asyncio.create_subprocess_exec(
        *TILLER, "web", "--no-open", *words,
        cwd=ground.root, env=dict(ground.env), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            url = (await process.stdout.readline()).decode().strip()
            while not (await process.stdout.readline()).startswith(b"Code"):
                pass
        yield url.removesuffix("/login")
    finally:
        process.terminate()
        async with asyncio.timeout(WITHIN_S):
            await process.wait()


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        (("--listen", f"{ANYWHERE}:0", "--tls-cert", "", "--tls-key", ""), rf"https://{PUBLIC_NAME}:\d+"),
        (("--port", "0", "--behind-proxy", "tiller.example.com"), r"https://tiller\.example\.com"),
        (("--listen", "127.0.0.2:0", "--behind-proxy", "tiller.example.com:8443"), r"https://tiller\.example\.com:8443"),
    ],
    ids=["certificate", "proxy on this machine", "proxy elsewhere"],
)  # fmt: skip
async def test_links_name_the_scheme_and_the_host_that_other_machines_reach(
    ground: Ground, certificate: tuple[Path, Path], words: Sequence[str], origin: str
) -> None:
    files = iter(map(str, certificate))
    given = [one or next(files) for one in words]
    ground.provider.script([says("hello")])
    async with daemon_process(ground.env):
        async with tiller_web(ground) as (_, client):
            created = (await client.post("/api/tasks", json={"prompt": "Say hello"})).json()
            while (await task_state(client, created["task"]))["state"] != "done":
                pass
        async with serving_others(ground, *given) as shown:
            assert re.fullmatch(origin, shown)
            code, out, err = await shared(ground, created["session"], "--yes")
            assert code == 0, err
            assert re.fullmatch(rf"{re.escape(shown)}/s/[\w-]+", out.strip())
            code, listed, _ = await shared(ground, "--list")
            assert (code, "active" in listed) == (0, True)
            (record,) = web_servers(Path(paths.runtime_folder(ground.env)))
            secure = record.certificate is not None
            async with httpx.AsyncClient(
                base_url=f"{'https' if secure else 'http'}://{record.address}:{record.port}",
                headers={"host": record.host},
                verify=ssl.create_default_context(cafile=str(certificate[0])),
            ) as browser:
                page = await browser.get(out.strip().removeprefix(shown))
            assert "Say hello" in page.text


async def test_another_machine_logs_in_with_the_code_of_the_terminal(
    ground: Ground, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    process = await asyncio.create_subprocess_exec(
        *TILLER, "web", "--no-open", "--qr", "--listen", f"{ANYWHERE}:0",
        "--tls-cert", str(cert), "--tls-key", str(key),
        cwd=ground.root, env=dict(ground.env), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            url = (await process.stdout.readline()).decode().strip()
            shown = [url]
            while not shown[-1].startswith("Code"):
                shown.append((await process.stdout.readline()).decode().strip())
        found = re.fullmatch(rf"https://{PUBLIC_NAME}:(\d+)/login", url)
        assert found is not None
        host = f"{PUBLIC_NAME}:{found[1]}"
        assert len(shown) > 10, "the QR code lies between"
        names = sorted(one.name for one in tokens(ground))
        assert names == [f"web-{found[1]}.https.token", f"web-{found[1]}.json"]
        async with httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{found[1]}",
            headers={"host": host, "origin": f"https://{host}"},
            verify=ssl.create_default_context(cafile=str(cert)),
            timeout=START_S,
        ) as phone:
            assert (await phone.get("/")).status_code == 303
            code = shown[-1].rpartition(" ")[2]
            assert (await phone.post("/v1/login", json={"code": code})).status_code == 204
            listed = await phone.post("/v1/rpc", json={"method": "agent/session/list"})
            assert "result" in listed.json()
    finally:
        process.terminate()
        async with asyncio.timeout(WITHIN_S):
            await process.wait()
        end_daemon(ground)


def run(ground: Ground, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*TILLER, "web", "--no-open", *words],
        cwd=ground.root, env=dict(ground.env), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "::"), "ssh -L 7433:127.0.0.1:7433 HOST"),
        (("--listen", "192.168.1.7", "--port", "9000"), "ssh -L 9000:127.0.0.1:9000 HOST"),
        (("--port", "70000"), "name one from 1 to 65535"),
        (("--listen", "::", "--tls-cert", "c.pem"), "--tls-cert and --tls-key belong together"),
        (("--behind-proxy", "https://a.example"), "name the public host"),
        (("--role", "root"), "unknown value 'root'"),
    ],
)
def test_what_is_not_offered_is_refused_in_one_sentence(
    ground: Ground, words: Sequence[str], said: str
) -> None:
    ended = run(ground, *words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


PROBE = """
import sys
for name in ("starlette", "uvicorn", "segno"):
    sys.modules[name] = None  # as if it were not installed
from tiller_server.cli.entry import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_the_extra_the_command_says_what_to_install(ground: Ground) -> None:
    env = {**ground.env, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}"}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROBE, "web", "--no-open"],
        cwd=ground.root, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "pip install 'tillerd[web]'" in ended.stderr


LISTING = """
import sys
{imports}
print("\\n".join(sys.modules))
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import tiller_server.daemon.main, tiller_server.lsp.loaded_agent, tiller_server.daemon.runs",
        "import tiller_server.cli.lsp_command, tiller_server.daemon.shim.shim",
        "import tiller_server.cli.acp.command, tiller_server.acp.connection",
        "import tiller_server.cli.subcommands.web",
    ],
)
def test_nothing_else_loads_the_web_stack(ground: Ground, imports: str) -> None:
    env = {**ground.env, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}"}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", LISTING.format(imports=imports)],
        cwd=ground.root, env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = {name.partition(".")[0] for name in ended.stdout.split()}
    ours = {name for name in ended.stdout.split() if name.startswith("tiller_server.web")}
    assert loaded & {"starlette", "uvicorn", "segno"} == set()
    assert ours == set()
