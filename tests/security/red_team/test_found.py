"""More attacks on containment, each as small as it can be told."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from ctypes import CDLL
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry, TreeIndex
from agent_core.workspace.sandbox.home_view import PrivateFolder
from agent_core.workspace.sandbox.quarantine import Quarantine
from tests.security.red_team.attack import Attack
from tests.security.red_team.oracle import snapshot
from tests.security.red_team.world import world
from tests.support.workspace.contained import contained, require_full

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full containment is for Linux"),
    pytest.mark.timeout(60),
]
NOBODY = 65_534
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
EXCHANGE_TRIES = 20_000


@pytest.mark.parametrize("name", ["prod.env", "x.key", "auth.json"])
def test_a_folder_with_the_name_of_a_secret_hides_no_repository(attack: Attack, name: str) -> None:
    """Such a folder is not walked."""
    attack.run(f"mkdir {name}; gitdir {name}/.git; echo evil > {name}/AGENTS.md")
    assert attack.breaches() == []


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe"])
def test_a_pipe_in_place_of_a_configuration_does_not_stop_the_clean_up(
    attack: Attack, kind: str
) -> None:
    """Who opens a pipe waits until somebody writes to it."""
    pipe = "mkfifo p; ln -s ../../p sub/.git/config" if "link" in kind else "mkfifo sub/.git/config"
    attack.run(f"git init -q sub; rm sub/.git/config; {pipe}")
    assert attack.run("echo again").output == "again\n"
    assert attack.breaches() == []


@pytest.mark.parametrize("link", ["ln -s ../../held sub/.git/config", "ln held sub/.git/config"])
def test_the_configuration_of_a_new_repository_has_no_second_name(
    attack: Attack, link: str
) -> None:
    """Under its other name the next command can change it."""
    attack.run(f"git init -q sub; mv sub/.git/config held; {link}")
    attack.run("evil > held")
    assert attack.breaches() == []


def test_a_folder_of_git_without_a_configuration_stops_no_later_command(attack: Attack) -> None:
    attack.run("mkdir -p sub/.git")
    assert attack.run("echo again").output == "again\n"
    assert attack.breaches() == []


def test_a_new_repository_is_not_in_the_middle_of_running_programs(attack: Attack) -> None:
    attack.run(
        "git init -q sub; mkdir sub/.git/rebase-merge\n"
        'echo "exec touch $MARK" > sub/.git/rebase-merge/git-rebase-todo'
    )
    assert attack.breaches() == []
    assert not (attack.world.root / "sub/.git/rebase-merge").exists()


def test_a_link_does_not_lead_into_the_private_temporary_folder(attack: Attack) -> None:
    """Where that lies outside is told in /proc/self/mountinfo."""
    attack.run(
        "mkdir /tmp/evil; gitdir /tmp/evil/.git; echo evil > /tmp/evil/AGENTS.md\n"
        "ln -s $(awk '$5 == \"/tmp\" {print $4}' /proc/self/mountinfo)/evil lib"
    )
    assert attack.breaches() == []
    assert not (attack.world.root / "lib").is_symlink()


def test_a_link_does_not_stand_for_a_folder_of_protected_folders(attack: Attack) -> None:
    attack.given("git rm -rq .github; git commit -qm gone")
    attack.run(
        "mkdir -p src/gh/instructions; echo evil > src/gh/instructions/a.md; ln -s src/gh .github"
    )
    assert attack.breaches() == []
    assert not (attack.world.root / ".github").is_symlink()


def test_git_does_not_write_a_rebase_through_a_link(attack: Attack) -> None:
    """A plain line of git may write the data of the repository: what it clones into that is no data."""
    attack.run(
        'git init -q evil; cd evil; echo "exec touch $MARK" > git-rebase-todo; git add -A\n'
        "git commit -qm evil; cd ..; ln -s .git x"
    )
    attack.ran.append(attack.commands.run("git clone -q evil x/rebase-merge"))
    assert attack.breaches() == []
    assert not (attack.world.root / ".git/rebase-merge").exists()


@pytest.mark.parametrize(
    "target", ["/", "/usr", "/bin/bash", "/proc/self", "src", "src/deep/main.c"]
)
def test_a_link_with_the_name_of_a_secret_hides_nothing_from_later_commands(
    attack: Attack, target: str
) -> None:
    attack.run(f"ln -s {target} a.pem")
    assert attack.run("cat src/deep/main.c").output == "int deep;\n"
    assert attack.breaches() == []


@pytest.mark.parametrize("target", ["/bin/bash", "src/deep/main.c"])
@pytest.mark.parametrize(
    "given", ["echo cert > a.pem; git add -f a.pem; git commit -qm c", "mkfifo a.pem"]
)
def test_a_link_in_place_of_a_secret_that_is_not_hidden_hides_nothing(
    attack: Attack, given: str, target: str
) -> None:
    """What git holds as it is shows as it is, so nothing is mounted there."""
    attack.given(given)
    ran = attack.run(f"rm a.pem; ln -s {target} a.pem")
    assert ran.quarantined == (attack.world.root / "a.pem",)
    assert attack.run("cat src/deep/main.c").output == "int deep;\n"


def test_a_link_on_the_path_shows_nothing_of_the_home() -> None:
    """A virtual environment of the project is on the PATH, and a command may change it."""
    with world() as machine:
        private = machine.home / "private"
        (machine.root / ".venv" / "bin").mkdir(parents=True)
        private.mkdir()
        (private / ".env").write_text("secret\n", "utf-8")
        env = {**machine.env, "PATH": f"{machine.root}/.venv/bin:{os.defpath}"}
        machine.__dict__["env"] = env
        with machine.session() as commands:
            _ = commands.run(f"rmdir .venv/bin; ln -s {private} .venv/bin")
            assert "secret" not in commands.run(f"cat {private}/.env").output


def test_long_paths_are_refused_with_their_reason(attack: Attack) -> None:
    """All places that are held are one argument, and the kernel takes no long one."""
    attack.run(
        'python3 -c \'import os\nfor _ in range(12): os.mkdir("n" * 250); os.chdir("n" * 250)\n'
        'for at in range(60): open(f"{at}.pem", "x").close()\''
    )
    refused = attack.commands.run("echo again").refused
    assert refused is not None
    assert "bytes of paths" in refused


def test_a_protected_link_stays_with_its_folder(attack: Attack) -> None:
    attack.given("mkdir two; ln -s ../AGENTS.md two/CLAUDE.md; git add two; git commit -qm two")
    attack.run("rm -rf two")
    assert (attack.world.root / "two/CLAUDE.md").readlink() == Path("../AGENTS.md")


@pytest.mark.parametrize(
    "hook",
    [
        "ln -s ../../scripts/check .git/hooks/pre-commit",
        "rm -r .git/hooks; ln -s ../scripts .git/hooks; cp scripts/check scripts/pre-commit",
        "git config core.hooksPath scripts; cp scripts/check scripts/pre-commit",
    ],
)
def test_the_hooks_of_the_user_are_held_where_they_lie(attack: Attack, hook: str) -> None:
    attack.given(f"mkdir scripts; echo '#!/bin/sh' > scripts/check; chmod +x scripts/check; {hook}")
    ran = attack.run("for one in scripts/*; do hook > $one; done")
    assert ran.exit_code != 0
    attack.world.git("commit", "-q", "--allow-empty", "-m", "hooked")
    assert not attack.world.marker.exists()


def test_opening_a_folder_changes_nothing_outside(tmp_path: Path) -> None:
    """The folder is exchanged with a link between the look and the change."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    folder, link = root / "folder", root / "link"
    folder.mkdir(parents=True)
    folder.chmod(0o077)
    outside.write_text("key", "utf-8")
    outside.chmod(0o600)
    link.symlink_to(outside)
    found = folder.lstat()
    entry = GuardedEntry("unreadable", found.st_dev, found.st_ino, stat.S_IFDIR)
    if (child := os.fork()) == 0:
        libc, first, second = CDLL(None), os.fsencode(folder), os.fsencode(link)
        while os.getppid() != 1:
            libc.renameat2(-100, first, -100, second, 2)
    try:
        quarantine = Quarantine(tmp_path / "quarantine", (root,))
        for _ in range(EXCHANGE_TRIES):
            if quarantine.make_readable(folder, entry):
                for path in (folder, link):
                    with suppress(OSError):
                        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                        os.fchmod(opened, 0o077)
                        os.close(opened)
            assert stat.S_IMODE(outside.stat().st_mode) & 0o077 == 0
    finally:
        os.kill(child, signal.SIGKILL)
        _ = os.waitpid(child, 0)


def _takes_closed_folder_away(root: Path, mode: int) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    index = TreeIndex((str(root),))
    _ = index.refresh()
    place = root / ".idea"
    place.mkdir()
    (place / "tasks.json").write_text("evil", "utf-8")
    place.chmod(mode)
    entry = index.refresh()[str(place)]
    assert entry.kind == "protected"
    assert Quarantine(root.parent / "quarantine", (root,)).take(place, entry)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("mode", ["500", "400", "0"])
def test_a_closed_folder_with_a_protected_name_is_taken_away(tmp_path: Path, mode: str) -> None:
    """Of an ordinary user: a folder gets another parent only where its owner may write to it."""
    (top := Path("/var/tmp") / tmp_path.name).mkdir()  # noqa: S108 - one that another user may enter
    try:
        (top / "root").mkdir()
        if os.geteuid() == 0:
            for path in (top, top / "root"):
                os.chown(path, NOBODY, NOBODY)
        if (child := os.fork()) == 0:
            try:
                _takes_closed_folder_away(top / "root", int(mode, 8))
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        _ = subprocess.run(["rm", "-rf", top], check=True)


def test_folders_in_folders_do_not_stop_the_end_of_a_session() -> None:
    folder = PrivateFolder()
    top = folder.path.parent
    here = os.open(folder.path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    folder.close()
    assert not top.exists()


def test_a_command_that_was_judged_as_contained_never_runs_uncontained(tmp_path: Path) -> None:
    _ = require_full()
    for at in range(600):
        (tmp_path / f"{at}.pem").touch()
    env = {"PATH": os.defpath}
    with contained(tmp_path) as sandbox:
        # Both commands are judged now.
        assert sandbox.containing.level == "full"
        for _ in range(2):
            with pytest.raises(OSError, match="cannot be contained"):
                _ = sandbox.wrap(("true",), cwd=tmp_path, env=env, needs=frozenset())
            # A snapshot for an editor.
            assert sandbox.containing.level == "none"


def test_what_a_folder_is_by_its_name_is_not_forgotten(tmp_path: Path) -> None:
    """A folder that is both protected and a repository was only known as the latter."""
    index = TreeIndex((str(tmp_path),))
    (tmp_path / ".idea").mkdir()
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / ".idea" / name).mkdir()
    assert index.refresh()[str(tmp_path / ".idea")].kind == "protected"
    (tmp_path / ".idea" / "refs").rmdir()
    assert index.refresh()[str(tmp_path / ".idea")].kind == "protected"
    index.close()


@pytest.mark.parametrize("made", ["mkdir node_modules/new", "true"])
def test_a_link_into_dependencies_does_not_wait_for_them_to_change(
    attack: Attack, made: str
) -> None:
    attack.run(f"{made}; ln -s node_modules/new lib")
    attack.run("mkdir -p node_modules/new; echo evil > node_modules/new/AGENTS.md")
    assert not (attack.world.root / "lib/AGENTS.md").exists()


HOOK = "printf '#!/bin/sh\\n' > {0}; chmod +x {0}"
PLANT = "mkdir -p {0}; hook > {0}/pre-commit; chmod +x {0}/pre-commit"
COMMIT = "git commit -q --allow-empty -m hooked"
INCLUDE = "git config include.path ../tools/a; printf '[include]\\n\\tpath = b\\n' > tools/a"
CONVERTED = "echo '*.md diff=x' > .gitattributes; git add -A; git commit -qm t; echo x >> file.md"


@pytest.mark.parametrize(
    ("setting", "script", "used"),
    [
        pytest.param("git config core.hooksPath gh", PLANT.format("gh"), COMMIT, id="no folder"),
        pytest.param(
            "git config core.hooksPath ./a/gh",
            "gitdir /tmp/x; mkdir b; ln -s b a; " + PLANT.format("b/gh"),
            COMMIT,
            id="a link on the way",
        ),
        pytest.param(
            "git config --global core.hooksPath gh", PLANT.format("gh"), COMMIT, id="the user's"
        ),
        pytest.param(
            "ln -s ../../s/pre-commit .git/hooks/pre-commit", PLANT.format("s"), COMMIT, id="a hook"
        ),
        pytest.param(
            f"mkdir s; {HOOK.format('s/pre-commit')}; git config core.hooksPath s; git add s; git commit -qm s;"
            " git worktree add -q wt",
            PLANT.format("wt/s"),
            f"git -C wt {COMMIT.removeprefix('git ')}",
            id="another working tree",
        ),
        pytest.param(
            "git config include.path ../settings", "evil > settings", "git status", id="an include"
        ),
        pytest.param(
            f"mkdir tools; {INCLUDE}; touch tools/b",
            "evil > tools/b",
            "git status",
            id="its include",
        ),
        pytest.param(
            f"mkdir tools; {INCLUDE}", "evil > tools/b", "git status", id="its include, not there"
        ),
        pytest.param(
            f"mkdir t; {HOOK.format('t/conv')}; touch file.md; git config diff.x.textconv t/conv; {CONVERTED}",
            "hook > t/conv",
            "git diff",
            id="a program",
        ),
        pytest.param(
            f"touch file.md; git config diff.x.textconv 'sh t/conv'; {CONVERTED}",
            "mkdir t; hook > t/conv",
            "git diff || true",
            id="a program, not there",
        ),
        pytest.param(
            f"mkdir t; {HOOK.format('t/x')}; git config alias.st '!sh t/x'",
            "hook > t/x",
            "git st",
            id="an alias",
        ),
    ],
)
def test_nothing_is_planted_where_git_is_led_to(
    attack: Attack, setting: str, script: str, used: str
) -> None:
    """What the user's settings and hooks name need not be there yet."""
    attack.given(setting)
    attack.run(script)
    attack.world.as_user(used)
    assert not attack.world.marker.exists()
    assert attack.run("echo again").output == "again\n"


@pytest.mark.parametrize("script", ["chmod 000 .", "chmod 0 $SECOND; chmod a-x $ROOT"])
def test_a_root_that_was_closed_is_opened_again(attack: Attack, script: str) -> None:
    before = [
        stat.S_IMODE(root.stat().st_mode) for root in (attack.world.root, attack.world.second)
    ]
    attack.run(script)
    assert attack.run("ls $SECOND; echo again").output == "AGENTS.md\nlib\nagain\n"
    after = [stat.S_IMODE(root.stat().st_mode) for root in (attack.world.root, attack.world.second)]
    assert after == before
    assert attack.breaches() == []


def test_hooks_of_a_repository_around_the_root_are_held(attack: Attack) -> None:
    attack.given(
        f"cd $ROOT/..; repository .; mkdir project/s; git config core.hooksPath project/s; {HOOK.format('project/s/pre-commit')}"
    )
    attack.run("hook > s/pre-commit")
    attack.world.as_user(f"cd $ROOT/..; {COMMIT}")
    assert not attack.world.marker.exists()


def test_nothing_is_made_where_a_protected_link_leads(attack: Attack) -> None:
    attack.given("ln -s ../docs/steer.md src/CLAUDE.md")
    ran = attack.run("echo evil > docs/steer.md")
    assert ran.quarantined == (attack.world.root / "docs/steer.md",)
    assert not (attack.world.root / "src/CLAUDE.md").exists()


@pytest.mark.parametrize(
    ("link", "to", "place"),
    [
        ("../docs/rules", ".cursor/rules", "docs/rules/a.md"),
        ("../../ci.yml", ".github/workflows/x.yml", "ci.yml"),
        ("../../../docs", ".claude/skills/one/docs", "docs/guide.md"),
    ],
)
def test_what_links_in_protected_folders_lead_to_is_held(
    attack: Attack, link: str, to: str, place: str
) -> None:
    attack.given(
        f"mkdir -p $(dirname {to}) $(dirname {place}); echo mine > {place}; ln -s {link} {to}"
    )
    attack.run(f"echo evil > {place}; echo evil > $(dirname {to})/new")
    assert (attack.world.root / place).read_text("utf-8") == "mine\n"
    assert attack.breaches() == []


@pytest.mark.parametrize("inside", ["echo key > {}/.env", "repository {}/sub", "ln -s . {}/.ssh"])
def test_a_folder_in_a_protected_one_is_held_whatever_is_in_it(attack: Attack, inside: str) -> None:
    """To hold something in its place, the folders around it are mounted: writable, over what was read-only."""
    folder = ".claude/skills/one"
    attack.given(f"mkdir -p {folder}; echo skill > {folder}/SKILL.md; {inside.format(folder)}")
    attack.run(f"echo evil > {folder}/SKILL.md; echo evil > {folder}/new.md; mkdir {folder}/new")
    assert attack.breaches() == []
    assert (attack.world.root / folder / "SKILL.md").read_text("utf-8") == "skill\n"


TODO = "$(git rev-parse --git-dir)/rebase-merge"
STEP = f"mkdir -p {TODO}; echo refs/heads/main > {TODO}/head-name; git rev-parse HEAD > {TODO}/onto; cp {TODO}/onto {TODO}/orig-head; touch {TODO}/interactive"


@pytest.mark.parametrize(
    "step",
    [
        'echo "exec touch $MARK" > {0}/git-rebase-todo',
        'printf "noop\\nx touch $MARK\\n" > {0}/git-rebase-todo',
        "echo evil > {0}/strategy",
        "mkdir -p {0}/../sequencer; printf '[options]\\n\\tstrategy = evil\\n' > {0}/../sequencer/opts",
        "rm -f {0}/git-rebase-todo; mkfifo {0}/git-rebase-todo",
    ],
)
def test_no_step_that_runs_a_program_is_planted_in_a_repository(step: str) -> None:
    """A plain line of git has the data of the repository open, also to programs that the user's settings start."""
    with world() as machine:
        env = {**machine.env, "PATH": f"{machine.root}/.venv/bin:{os.defpath}"}
        machine.__dict__["env"] = env
        machine.as_user("mkdir -p .venv/bin; git config --global commit.gpgsign true")
        with machine.session() as commands:
            attack = Attack(machine, commands)
            attack.run(
                f"printf '#!/bin/sh\\nMARK=%s\\n' $MARK > .venv/bin/gpg; cat >> .venv/bin/gpg <<'END'\n"
                f"{STEP}; {step.format(TODO)}\nexit 1\nEND\nchmod +x .venv/bin/gpg"
            )
            _ = commands.run("git commit -q --allow-empty -m x")
        git = machine.root / ".git"
        assert (git / "rebase-merge/onto").exists()
        for name in ("rebase-merge/git-rebase-todo", "rebase-merge/strategy", "sequencer/opts"):
            assert not os.path.lexists(git / name)
        machine.as_user("git -c commit.gpgsign=false rebase --continue || true")
        assert not machine.marker.exists()


def test_an_unfinished_rebase_of_plain_steps_stays(attack: Attack) -> None:
    attack.given(
        "git checkout -qb o; echo b > f; git add f; git commit -qm b\n"
        "git checkout -q main; echo a > f; git add f; git commit -qm a; git checkout -q o"
    )
    ran = attack.commands.run("git rebase main")
    assert (ran.exit_code, ran.quarantined) == (1, ())
    assert (attack.world.root / ".git/rebase-merge/git-rebase-todo").exists()
    assert attack.commands.run("git rebase --abort").exit_code == 0


# What is known and not held.


@pytest.mark.xfail(
    not PTRACE_SCOPE.is_file() or PTRACE_SCOPE.read_text("ascii").strip() == "0",
    strict=True,
    reason="where the kernel does not forbid it, the memory of the keeper can be read",
)
def test_a_command_cannot_read_the_key_of_the_report(attack: Attack) -> None:
    ran = attack.run("head -c 1 /proc/2/environ; exec 3< /proc/2/mem && echo read")
    assert "read" not in ran.output


@pytest.mark.xfail(strict=True, reason="a mount is gone once what it lies on is replaced outside")
def test_what_is_replaced_outside_stays_held(attack: Attack) -> None:
    attack.given("echo old > .env")
    root = attack.world.root

    def replace() -> None:
        for name in ("AGENTS.md", ".env"):
            (root / "new").write_text("mine\n", "utf-8")
            (root / "new").replace(root / name)
        (root / "go").touch()

    attack.before = snapshot(attack.world)
    text = (
        f"ROOT={root}\nwaiting() {{ echo PLANTED; until [ -e $ROOT/go ]; do sleep 0.02; done; }}\n"
    )
    ran = attack.commands.run(f"{text} waiting; cat .env; echo evil >> AGENTS.md", during=replace)
    assert "mine" not in ran.output
    assert (root / "AGENTS.md").read_text("utf-8") == "mine\n"
