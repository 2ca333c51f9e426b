"""Ordinary work goes on in containment, and what it keeps back is said."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.workspace.adapters.processes import DiskProcesses
from agent_core.workspace.permission import Needs
from tests.support.contained import contained, contained_processes
from tests.workspace.sandbox.ground import Ground, ground

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment is for Linux")
GIT: frozenset[Needs] = frozenset({"gitConfig"})
SHARED = "/tmp/tiller-shared-file"  # noqa: S108 - inside it is another folder
NETWORK: frozenset[Needs] = frozenset({"network"})


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
        "echo '# more' >> code.py && git add -A code.py && git commit -qm more && git log --oneline",
        "git status --short && git diff && git stash list && git checkout -qb topic && git branch",
        "git tag v1 && git reset -q --hard HEAD && git gc -q",
        "python3 code.py",
        "python3 -c 'import tempfile; print(tempfile.mkdtemp())'",
        "python3 -c 'import multiprocessing as m; print(m.get_context(\"fork\").Pool(2).map(abs, [-1]))'",
        "mktemp && touch /var/tmp/x && echo x > /dev/null && echo x > /dev/shm/y",
        "cat /etc/hostname /etc/passwd >/dev/null; ls / ~ >/dev/null",
        "sleep 0.01 & wait; seq 1 100 | sort -n | tail -1",
        "test -z \"$(cat ~/.npmrc)\" && ls -A ~/.ssh && id && whoami",
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


# What is taken away


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("mkdir .idea && echo x > .idea/workspace.xml", ".idea"),
        ("echo x > CLAUDE.md", "CLAUDE.md"),
        ("echo x > claude.MD", "claude.MD"),
        ("ln -s code.py .bashrc", ".bashrc"),
        ("mkdir -p src && echo x > src/AGENTS.md", "src/AGENTS.md"),
        ("mkdir -p .git/other && echo ../other > .git/commondir", ".git/commondir"),
        ("echo x > .git/config.worktree", ".git/config.worktree"),
        ("mkdir -p .github/actions/x && echo x > .github/actions/x/action.yml", ".github/actions"),
        ("mv package p2; mkdir -p package/.vscode; echo x > package/.vscode/tasks.json", "package/.vscode"),
        ("mkdir sub && cd sub && git init -q && echo x > .git/hooks/pre-commit", "sub/.git"),
        ("mkdir sub && cd sub && git init -q && git config core.fsmonitor ./x", "sub/.git"),
        ("echo x > evil.code-workspace", "evil.code-workspace"),
        ("mkdir -p .git/modules/x && echo x > .git/modules/x/config", ".git/modules"),
        ("mv .github g2; mkdir -p .github/workflows; echo x > .github/workflows/x.yml", ".github/workflows"),
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
