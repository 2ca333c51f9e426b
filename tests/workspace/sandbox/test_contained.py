"""Ordinary work goes on in containment, and what it keeps back is said."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.clients.office import soon
from tests.support.workspace.contained import contained, contained_processes
from tests.workspace.sandbox.ground import Ground, ground

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment is for Linux")
GIT: frozenset[Needs] = frozenset({"gitConfig"})
SHARED = "/tmp/tiller-shared-file"  # noqa: S108 - inside it is another folder
NETWORK: frozenset[Needs] = frozenset({"network"})
SOCKETS: frozenset[Needs] = frozenset({"sockets"})
UNIX = """python3 -c '
import asyncio, os, socket
def reach(kind, address):
    try:
        with socket.socket(kind) as made:
            made.connect(address)
        return "reached"
    except OSError as error:
        return type(error).__name__
try:
    with socket.socket(socket.AF_UNIX) as own:
        own.bind("own.sock")
        own.listen()
        print("own", reach(socket.AF_UNIX, "own.sock"))
    os.unlink("own.sock")
except OSError as error:
    print("own", type(error).__name__)
print("abstract", reach(socket.AF_UNIX, chr(0) + os.environ["ABSTRACT"]))
print("port", reach(socket.AF_INET, ("127.0.0.1", int(os.environ["TCP"]))))
print("pair", [one.close() for one in socket.socketpair()])
print("name", bool(socket.getaddrinfo("localhost", 80)))
print("loop", asyncio.run(asyncio.sleep(0, "runs")))
'"""
"""Tries every way to other programs; what needs no other program works in any case."""


@pytest.fixture
def world() -> Iterator[Ground]:
    with ground() as made:
        yield made


@pytest.fixture
def inside(world: Ground) -> Iterator[DiskProcesses]:
    with contained(
        world.root, env=world.env, hidden=world.own, quarantine=world.own[1] / "quarantine"
    ) as sandbox:
        yield DiskProcesses(sandbox=sandbox)


def _git(folder: Path, *words: str) -> str:
    env = {"PATH": os.defpath, "HOME": str(folder)}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True
    )
    return done.stdout.decode()


# What works


@pytest.mark.parametrize(
    "command",
    [
        "echo x > new.txt && mkdir -p a/b && mv new.txt a/b && cat a/b/new.txt",
        "git add -A . && git commit -qm more && git log --oneline 2>&1 | head -3",
        "git status --short && git diff && git stash list && git checkout -qb topic && git branch",
        "git rm -q --cached code.py && git stash -q && git stash pop -q",
        "echo x >> code.py; git status --short; git diff | cat > diff.txt",
        "git tag v1 && git reset -q --hard HEAD && git gc -q",
        "python3 code.py",
        "python3 -c 'import tempfile; print(tempfile.mkdtemp())'",
        "python3 -c 'import multiprocessing as m; print(m.get_context(\"fork\").Pool(2).map(abs, [-1]))'",
        "mktemp && touch /var/tmp/x && echo x > /dev/null && echo x > /dev/shm/y",
        "cat /etc/hostname /etc/passwd >/dev/null; ls / ~ >/dev/null",
        "sleep 0.01 & wait; seq 1 100 | sort -n | tail -1",
        "cat ~/.npmrc && test -z \"$(cat ~/.npmrc)\" && ! ls ~/.ssh && id && whoami",
    ],
)  # fmt: skip
async def test_ordinary_work_goes_on(world: Ground, inside: DiskProcesses, command: str) -> None:
    ran = await world.run(inside, command)
    assert ran.end.exit_code == 0, ran.output
    assert (ran.killed.quarantined, ran.killed.denied) == ((), ())


async def test_commands_of_a_session_share_a_private_temporary_folder(
    world: Ground, inside: DiskProcesses
) -> None:
    await world.run(inside, f"echo kept > {SHARED}")
    assert (await world.run(inside, f"cat {SHARED}")).output == "kept\n"
    assert not os.path.lexists(SHARED)  # noqa: ASYNC240 - nothing else runs here


async def test_a_workspace_below_tmp_can_be_worked_in(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))  # noqa: ASYNC240 - nothing else runs here
    async with contained_processes(root) as processes:
        process = await processes.start(
            ("bash", "-c", "echo x > made && ls .."), cwd=root, env={"PATH": os.defpath}
        )
        assert await process.read() == f"{root.name}\n".encode()
        await process.end(grace_s=0.1)
    assert (root / "made").read_text() == "x\n"


async def test_with_the_network_the_machine_is_reached(
    world: Ground, inside: DiskProcesses
) -> None:
    command = 'exec 3<>"/dev/tcp/127.0.0.1/$TCP" && echo in; ls "$RUNTIME"; ls /run'
    ran = await world.run(inside, command, needs=NETWORK)
    assert ran.output.startswith("in\n")
    assert "daemon.sock" not in ran.output


@pytest.mark.parametrize(
    ("needs", "ways"),
    [
        (frozenset(), ("PermissionError", "PermissionError", "ConnectionRefusedError")),
        (NETWORK, ("PermissionError", "PermissionError", "reached")),
        (SOCKETS, ("reached", "ConnectionRefusedError", "ConnectionRefusedError")),
        (NETWORK | SOCKETS, ("reached", "reached", "reached")),
    ],
    ids=["contained", "network", "sockets", "both"],
)
async def test_the_network_and_unix_sockets_are_given_apart(
    world: Ground, inside: DiskProcesses, needs: frozenset[Needs], ways: tuple[str, str, str]
) -> None:
    own, abstract, port = ways
    ran = await world.run(inside, UNIX, needs=needs)
    assert ran.output.splitlines() == [
        f"own {own}",
        f"abstract {abstract}",
        f"port {port}",
        "pair [None, None]",
        "name True",
        "loop runs",
    ]


async def test_git_is_configured_when_that_was_agreed_to(
    world: Ground, inside: DiskProcesses
) -> None:
    command = "git config core.pager less && echo x > .git/hooks/pre-push"
    refused = await world.run(inside, command)
    assert refused.end.exit_code != 0
    assert any("gitConfig" in said for said in refused.killed.denied)
    ran = await world.run(inside, command, needs=GIT)
    assert ran.end.exit_code == 0, ran.output
    assert (world.root / ".git/hooks/pre-push").exists()
    assert ran.killed.quarantined == ()


SET_USER_ID = """
import os, sys
def tried(name, make):
    try:
        make()
    except OSError as error:
        print(name, error.strerror)
    else:
        print(name, "made")
open("plain", "w").close()
tried("chmod", lambda: os.chmod("plain", 0o4755))
tried("fchmod", lambda: os.chmod(os.open("plain", os.O_RDONLY), 0o4755))
tried("fchmodat", lambda: os.chmod("plain", 0o4755, dir_fd=os.open(".", os.O_RDONLY)))
tried("open", lambda: os.open("opened", os.O_CREAT | os.O_WRONLY, 0o4755))
tried("mknod", lambda: os.mknod("node", 0o104755))
tried("nameless", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755))
os.mkdir("team")
tried("group", lambda: os.chmod("team", 0o2775))
tried("plain", lambda: os.chmod("plain", 0o755))
"""


async def test_no_program_runs_with_the_rights_of_its_owner(
    world: Ground, inside: DiskProcesses
) -> None:
    ran = await world.run(inside, f"python3 -c '{SET_USER_ID}'")
    refused = [f"{name} Operation not permitted" for name in ("chmod", "fchmod", "fchmodat", "open", "mknod", "nameless")]  # fmt: skip
    assert ran.output.splitlines() == [*refused, "group made", "plain made"]
    modes = {path.name: path.stat().st_mode for path in world.root.iterdir() if path.is_file()}
    assert not any(mode & 0o4000 for mode in modes.values())
    ran = await world.run(inside, "cp /bin/true own && chmod u+s own")
    assert "Operation not permitted" in ran.output


# What is taken away


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("mkdir .idea && echo x > .idea/workspace.xml", ".idea"),
        ("echo x > CLAUDE.md", "CLAUDE.md"),
        ("echo x > claude.MD", "claude.MD"),
        ("ln -s code.py .bashrc", ".bashrc"),
        ("mkdir -p src && echo x > src/AGENTS.md", "src/AGENTS.md"),
        ("mkdir -p .github/actions/x && echo x > .github/actions/x/action.yml", ".github/actions"),
        ("mkdir sub && cd sub && git init -q && echo x > .git/hooks/pre-commit", "sub/.git/hooks"),
        ("mkdir -p a/b/c && cd a/b/c && git init -q && echo x > .git/commondir", "a/b/c/.git/commondir"),
        ("mkdir -p a/b/c/d && echo x > a/b/c/d/AGENTS.md && chmod 555 a/b/c/d", "a/b/c/d/AGENTS.md"),
        ("git init -q --bare b && git -C b config core.fsmonitor ./x", "b/HEAD"),
        ("mkdir -p node_modules/x && echo x > node_modules/x/AGENTS.md && ln -s node_modules/x src", "src"),
        ("echo x > evil.code-workspace", "evil.code-workspace"),
        ("mkdir sub; echo 'gitdir: ../evil' > sub/.git", "sub/.git"),
    ],
)  # fmt: skip
async def test_a_protected_name_that_appears_is_taken_away_and_named(
    world: Ground, inside: DiskProcesses, command: str, name: str
) -> None:
    ran = await world.run(inside, command)
    assert world.root / name in ran.killed.quarantined, ran.output
    assert not os.path.lexists(world.root / name)  # noqa: ASYNC240 - nothing else runs here
    assert list((world.own[1] / "quarantine").iterdir())


async def test_a_new_repository_keeps_only_the_settings_that_make_git_run_nothing(
    world: Ground, inside: DiskProcesses
) -> None:
    command = "mkdir sub && cd sub && git init -q && git config core.fsmonitor ./x && git config core.autocrlf input"
    ran = await world.run(inside, command)
    assert ran.killed.quarantined == (world.root / "sub/.git/config",)
    config = (world.root / "sub/.git/config").read_text()
    assert "autocrlf = input" in config
    assert "fsmonitor" not in config


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .git",
        "mv .git g2",
        "mkdir -p .git/other && echo ../other > .git/commondir",
        "echo x > .git/config.worktree",
        "mkdir -p .git/modules/x",
        "mv package p2",
        "mv .github g2",
        "echo x > package/.vscode/tasks.json",
        "rm AGENTS.md",
        "ln AGENTS.md copy && echo x > copy",
        "git update-ref -d refs/heads/main | tee /dev/null > log",
    ],
)
async def test_what_is_held_stays_as_and_where_it_is(
    world: Ground, inside: DiskProcesses, command: str
) -> None:
    before = _content(world.root)
    ran = await world.run(inside, command)
    assert ran.end.exit_code != 0 or "update-ref" in command
    assert ran.killed.quarantined == ()
    after = _content(world.root)
    after.pop("log", None)
    assert after == before


def _content(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


async def test_a_protected_link_is_put_back(world: Ground, inside: DiskProcesses) -> None:
    link = world.root / "CLAUDE.md"
    link.symlink_to("AGENTS.md")
    ran = await world.run(inside, "rm CLAUDE.md && echo evil > CLAUDE.md")
    assert ran.killed.quarantined == (link,)
    assert str(link.readlink()) == "AGENTS.md"
    assert (world.root / "AGENTS.md").read_text() == "be good\n"


async def test_what_somebody_else_changes_meanwhile_is_left_alone(
    world: Ground, inside: DiskProcesses
) -> None:
    """An editor saves by putting a new file in the place of the old one."""
    rules = world.root / "AGENTS.md"
    waits = "touch begun; while [ ! -e go ]; do :; done"
    process = await inside.start(("bash", "-c", waits), cwd=world.root, env=world.env)
    await soon((world.root / "begun").exists)
    (world.root / "new").write_text("be better\n")
    (world.root / "new").rename(rules)
    (world.root / "go").touch()
    assert (await process.wait()).exit_code == 0
    killed = await process.end(grace_s=0.1)
    assert killed.quarantined == ()
    assert rules.read_text() == "be better\n"


async def test_secrets_of_the_workspace_show_as_empty(world: Ground, inside: DiskProcesses) -> None:
    for name in (".env", "deep/er/prod.pem"):
        (world.root / name).parent.mkdir(parents=True, exist_ok=True)
        (world.root / name).write_text("tell-nobody")
    ran = await world.run(inside, "cat .env deep/er/prod.pem; mv deep d2; echo x > .env")
    assert "tell-nobody" not in ran.output
    assert (world.root / ".env").read_text() == "tell-nobody"
    assert (world.root / "deep/er/prod.pem").exists()
    assert any(".env" in one for one in ran.killed.denied)


async def test_a_new_repository_that_runs_nothing_stays(
    world: Ground, inside: DiskProcesses
) -> None:
    ran = await world.run(
        inside, "mkdir sub && cd sub && git init -q && git remote add o https://x/y"
    )
    assert ran.end.exit_code == 0
    assert ran.killed.quarantined == ()
    assert (world.root / "sub/.git/HEAD").exists()


# Other kinds of repositories


async def test_a_worktree_is_committed_to_and_the_repository_keeps_its_config(
    world: Ground,
) -> None:
    main = world.root
    tree = world.home / "tree"
    _git(main, "worktree", "add", "-q", str(tree))
    async with contained_processes(tree, env=world.env) as processes:
        process = await processes.start(
            (
                "bash",
                "-c",
                "echo x > new && git add new && git commit -qm new && git config core.pager x; echo x > ../project/AGENTS.md",
            ),
            cwd=tree,
            env=world.env,
            needs=frozenset({"gitData"}),
        )
        await process.wait()
        await process.end(grace_s=0.1)
    assert _git(tree, "log", "--format=%s", "-1") == "new\n"
    assert "pager" not in (main / ".git/config").read_text()
    assert (main / "AGENTS.md").read_text() == "be good\n"


async def test_a_file_cannot_open_somebody_elses_repository(world: Ground) -> None:
    other = world.home / "other"
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {world.root}/.git\n")
    async with contained_processes(other, env=world.env) as processes:
        process = await processes.start(
            ("bash", "-c", "echo x > ../project/.git/x; echo x > ../project/.git/description"),
            cwd=other,
            env=world.env,
        )
        await process.wait()
        await process.end(grace_s=0.1)
    assert not (world.root / ".git/x").exists()
    assert (world.root / ".git/description").read_text() != "x\n"


async def test_a_command_lives_on_while_threads_come_and_go(
    world: Ground, inside: DiskProcesses
) -> None:
    """What started it must not be a thread that ends."""
    process = await inside.start(
        ("bash", "-c", "sleep 0.3; echo alive"), cwd=world.root, env=world.env
    )
    for _ in range(5):
        assert (await world.run(inside, "true")).end.exit_code == 0
    assert await process.read() == b"alive\n"
    assert (await process.wait()).exit_code == 0
    await process.end(grace_s=0.1)
