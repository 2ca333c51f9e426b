"""Attacks on containment, each as small as it can be told: what a command did, and that it had no effect."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.security.red_team.attack import Attack
from tests.security.red_team.containment import PLANTED, run_uncontained, verdict
from tests.security.red_team.oracle import breaches, snapshot, victim
from tests.security.red_team.scripts import EXCHANGE, PAYLOADS
from tests.security.red_team.world import world
from tests.support.harness.shared import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full containment is for Linux"),
    pytest.mark.timeout(60),
]
EXCHANGES = 24
"""Commands beside which a folder and a link change places; before the clean-up was safe five were enough."""
LINKED_FOLDERS = (".git", "", ".claude/skills")


def test_many_new_repositories_do_not_make_git_config_writable(attack: Attack) -> None:
    """B1: a list of read-only mounts that is cut at a number leaves `.git/config` out."""
    attack.run("for i in $(seq -w 0 99); do git init -q .a$i; done")
    attack.run("evil >> .git/config")
    assert attack.breaches() == []


def test_many_protected_names_of_the_user_do_not_make_git_config_writable(attack: Attack) -> None:
    """B1, without a first command: a repository with an AGENTS.md per package."""
    attack.given(
        "for i in $(seq 0 199); do mkdir -p .a$i; echo steer $i > .a$i/AGENTS.md; echo x > .a$i/.envrc; done"
    )
    attack.before = snapshot(attack.world)
    # It may be refused as well, which nothing here asks for.
    _ = attack.commands.run(f"{attack.world.names}\n{PAYLOADS}\nevil >> .git/config")
    assert breaches(attack.world, attack.before) == []


def test_the_git_folder_of_another_worktree_does_not_get_another_common_folder(
    attack: Attack,
) -> None:
    """B3: git reads the configuration of the folder that `commondir` names."""
    attack.given("git worktree add -q $SECOND/tree")
    attack.run(
        "mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil; evil > evil/config\n"
        "echo $PWD/evil > .git/worktrees/tree/commondir"
    )
    assert attack.breaches() == []


def test_a_session_in_a_worktree_cannot_change_the_other_worktree(attack: Attack) -> None:
    """B3 the other way round: the common folder lies outside of the workspace."""
    machine = attack.world
    attack.given("git worktree add -q $SECOND/one; git worktree add -q $HOUSE/two")
    attack.run(
        "common=$(git -C $SECOND/one rev-parse --path-format=absolute --git-common-dir)\n"
        "mkdir evil; cp -r $common/objects $common/refs $common/HEAD evil; evil > evil/config\n"
        "echo $PWD/evil > $common/worktrees/two/commondir"
    )
    assert attack.breaches() == []
    machine.git("status", cwd=machine.home / "two")
    assert not machine.marker.exists()


@pytest.mark.parametrize("folder", LINKED_FOLDERS)
@pytest.mark.parametrize("name", [".github", ".gitea"])
def test_the_clean_up_does_not_follow_a_link_out_of_the_workspace(
    attack: Attack, folder: str, name: str
) -> None:
    """B4: `<link>/hooks` and the like were moved away from a folder of the user."""
    attack.given("mv .github .github-of-mine")
    attack.run(f"ln -s $HOUSE/other/{folder} {name}; ln -s $HOUSE/.claude $ROOT/src/{name}")
    assert attack.breaches() == []


def test_the_clean_up_does_not_follow_a_folder_that_is_exchanged_with_a_link(
    attack: Attack,
) -> None:
    """B4, with a second contained process in the same workspace."""
    swap = "mkdir -p x; ln -sfn $HOUSE/other y; echo READY; exchanging x y"
    attack.before = snapshot(attack.world)
    with attack.world.session() as other:
        # A command is refused where a folder changes while it is looked at.
        ran = attack.commands.run_all(
            ("true",) * EXCHANGES,
            beside=(other, f"{attack.world.names}\n{PAYLOADS}\n{swap}"),
        )
    assert breaches(attack.world, attack.before) == []
    assert [one.failed for one in ran if one.failed] == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("evil >> vendor/lib/.git/config", id="config of a repository"),
        pytest.param("hook > vendor/lib/.git/hooks/pre-commit", id="hook of a repository"),
        pytest.param("mkdir -p src/app; gitdir src/app/.git", id="new repository"),
        pytest.param("echo evil > src/deep/AGENTS.md", id="new AGENTS.md"),
        pytest.param("echo evil > vendor/lib/AGENTS.md", id="AGENTS.md"),
        pytest.param("mkdir src/deep/.vscode; echo '{}' > src/deep/.vscode/tasks.json", id="new tasks"),
        pytest.param("echo evil > vendor/lib/.vscode/tasks.json", id="tasks"),
        pytest.param("echo evil > src/deep/.envrc", id="new .envrc"),
        pytest.param("echo evil > vendor/lib/.envrc", id=".envrc"),
        pytest.param("bare src/deep/cache", id="new bare repository deep"),
        pytest.param("bare bare", id="new bare repository"),
        pytest.param("cd vendor/store; evil >> config; git config --file config core.worktree $ROOT; git config --file config core.bare false", id="bare repository"),
    ],
)  # fmt: skip
def test_protection_reaches_every_depth(attack: Attack, script: str) -> None:
    """B5: names were protected in the root and one folder below it alone."""
    attack.given(
        "repository vendor/lib; cd vendor/lib; echo steer lib > AGENTS.md; mkdir .vscode\n"
        "echo '{\"lib\": 1}' > .vscode/tasks.json; echo '# lib' > .envrc\n"
        "git init -q --bare --template= $ROOT/vendor/store"
    )
    attack.run(script)
    assert attack.breaches() == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("mkdir evil; gitdir evil; echo ../evil > .git/commondir", id="commondir"),
        pytest.param("mkdir -p .git/hooks; hook > .git/hooks/post-index-change; chmod +x .git/hooks/*", id="hooks"),
        pytest.param("evil > .git/config.worktree", id="config.worktree"),
        pytest.param("mkdir -p .git/info; echo '* filter=x' > .git/info/attributes", id="attributes"),
    ],
)  # fmt: skip
def test_what_git_would_obey_does_not_count_while_the_command_runs(
    attack: Attack, script: str
) -> None:
    """B7: a command has 600 s in which an editor asks git again and again."""
    attack.given("git config core.repositoryformatversion 1; rm -rf .git/hooks .git/info")
    attack.given("git config extensions.worktreeConfig true")
    told: list[str] = []
    attack.before = snapshot(attack.world)
    text = f"{attack.world.names}\n{PAYLOADS}\n{script}\nwaiting; rm -f .git/commondir .git/config.worktree"

    def look() -> None:
        told.extend(victim(attack.world, locks=False))
        (attack.world.root / "go").touch()

    ran = attack.commands.run(text, during=look)
    assert PLANTED.decode() in ran.output
    assert told == []
    assert breaches(attack.world, attack.before) == []


@pytest.mark.parametrize("count", [6_000])
def test_names_beside_thousands_of_others_are_looked_at(attack: Attack, count: int) -> None:
    """B8: only some thousand entries of a folder were looked at, some hundred folders of a root."""
    attack.run(f"mkdir many; cd many; many {count}")
    attack.run("mkdir wide; cd wide; seq -f 'd%g' 1 600 | xargs mkdir")
    attack.run(
        "for at in many wide/d1 wide/d300 wide/d600; do cd $ROOT/$at; mkdir .vscode .idea\n"
        "echo evil > .vscode/tasks.json; for name in .mcp.json AGENTS.md .envrc CLAUDE.md; do echo evil > $name; done; done"
    )
    assert attack.breaches() == []


def test_existing_names_beside_thousands_of_others_are_held(attack: Attack) -> None:
    """B8: the same for what was there before."""
    attack.given("many 6000; mkdir d{1..400}")
    attack.given("for i in 1 200 400; do echo steer $i > d$i/AGENTS.md; done")
    attack.run("for at in . d1 d200 d400; do echo evil >> $at/AGENTS.md; done; echo x >> .mcp.json")
    assert attack.breaches() == []


def test_a_protected_file_is_not_exchanged_with_its_folder(attack: Attack) -> None:
    """B9: the parent of a mount point can be renamed, and a link put in its place."""
    attack.run(
        "mkdir -p d/x/y; mv docs d/x/y/old; mkdir d/x/y/new; echo evil > d/x/y/new/AGENTS.md\n"
        "ln -s d/x/y/new docs"
    )
    assert attack.breaches() == []


def test_a_protected_file_is_not_exchanged_with_its_folder_at_once(attack: Attack) -> None:
    """B9 by one system call."""
    attack.run("mkdir twin; echo evil > twin/AGENTS.md; exchange docs twin")
    assert attack.breaches() == []


@pytest.mark.parametrize("old", ["lib", "docs", "a/b/c"])
def test_an_ordinary_rename_takes_nothing_of_the_user_away(attack: Attack, old: str) -> None:
    """B12: a nested repository with its commits, and protected files, went to the quarantine."""
    attack.given(
        f"repository {old}/nested; cd {old}; git -C nested config core.autocrlf input\n"
        "echo steer more > CLAUDE.md; mkdir .vscode; echo '{\"more\": 1}' > .vscode/settings.json"
    )
    machine = attack.world
    head = machine.git("rev-parse", "HEAD", cwd=machine.root / old / "nested")
    names = sorted(path.relative_to(machine.root / old) for path in (machine.root / old).rglob("*"))
    ran = attack.run(f"mv {old} library")
    assert attack.breaches() == []
    # What is held stays where it is. Where `mv` copied first, copies of protected files may be taken away, nothing else.
    assert ran.exit_code not in {0, None}
    at = machine.root / old
    assert all("library" in path.parts for path in ran.quarantined)
    assert machine.git("rev-parse", "HEAD", cwd=at / "nested") == head
    there = {path.relative_to(at) for path in at.rglob("*")}
    copied = machine.root / "library"
    assert there | {path.relative_to(copied) for path in copied.rglob("*")} >= set(names)
    assert (at / "CLAUDE.md").read_text("utf-8") == "steer more\n"


def test_a_command_cannot_change_the_product_that_is_installed_in_the_project(
    attack: Attack,
) -> None:
    """B16: a file `*.pth` in the project's virtual environment runs when the product starts again."""
    machine = attack.world
    _ = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=machine.root, check=True
    )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = machine.root / ".venv" / "lib" / version / "site-packages"
    installed = f"{ROOT}\n{sysconfig.get_path('purelib')}\n"
    (packages / "product.pth").write_text(installed, "utf-8")
    script = f"touch {packages}/zz.pth; echo x >> {packages}/product.pth; echo done"
    done = subprocess.run(
        [
            *(machine.root / ".venv/bin/python", "-m", "tests.security.red_team.containment"),
            *(machine.root, machine.home, script),
        ],
        cwd=ROOT,
        env={"PATH": os.defpath, "HOME": str(machine.home)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    ran = json.loads(done.stdout)
    assert (ran["refused"], ran["code"]) == (None, 0), ran
    assert not (packages / "zz.pth").exists()
    assert (packages / "product.pth").read_text("utf-8") == installed


@pytest.mark.parametrize("name", [".npmrc", ".netrc", ".git-credentials", ".pypirc"])
def test_a_masked_file_reads_as_empty(attack: Attack, name: str) -> None:
    """B25: programs ask for these at every start and stop at an error."""
    attack.given(f"echo secret > $HOUSE/{name}")
    ran = attack.run(f"cat $HOUSE/{name}")
    assert (ran.exit_code, ran.output) == (0, "")


def test_a_command_cannot_write_how_it_ended(attack: Attack) -> None:
    """B26: the report of the process that stands beside it was a pipe that /proc led to."""
    ran = attack.run(
        "for one in /proc/[0-9]*; do for fd in $one/fd/*; do (echo '0 2' > $fd) 2>/dev/null; done; done\n"
        "sleep 0.5; exit 3"
    )
    assert ran.exit_code == 3


# Where containment is less than full, the policy asks.

SCRIPTS = (
    "for i in $(seq 99); do git init -q .a$i; done",
    "printf '[core]' >> .git/config",
    "echo $PWD/evil > .git/worktrees/tree/commondir",
    "ln -s ~/other/.git .github",
    "echo evil > src/deep/AGENTS.md",
    "git init --bare bare",
    "echo ../evil > .git/commondir; sleep 3",
    "seq -f 'f%g' 1 6000 | xargs touch",
    "mv docs d/old; ln -s d/new docs",
    "mv lib library",
    "touch .venv/lib/python3.11/site-packages/zz.pth",
    "cat ~/.npmrc",
    "echo '0 2' > /proc/2/fd/1; exit 3",
)


@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.parametrize("level", ["partial", "none"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_without_full_containment_the_policy_asks(script: str, level, mode: str) -> None:
    assert verdict(script, root=Path("/srv/project"), level=level, mode=mode) == "ask"


# The oracle itself.


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("evil >> .git/config", "PWNED"),
        ("mkdir -p src/app; gitdir src/app/.git", "new repository stays"),
        ("bare cache", "PWNED"),
        ("echo evil >> docs/AGENTS.md", "other bytes"),
        ("echo evil > src/AGENTS.md", "new protected name stays"),
        ("rm -rf docs", "lost"),
        ("echo x > $HOUSE/new", "outside of the workspace: created"),
        ("mkdir twin; echo evil > twin/AGENTS.md; exchange docs twin", "other bytes"),
    ],
)
def test_the_oracle_sees_what_works_without_containment(script: str, told: str) -> None:
    with world() as machine:
        before = snapshot(machine)
        text = f"{machine.names}\n{PAYLOADS}\n{EXCHANGE}\n{script}"
        _ = run_uncontained(text, root=machine.root, env=machine.env)
        found = breaches(machine, before)
        assert any(told in one for one in found), found


def test_the_oracle_is_quiet_when_nothing_happened() -> None:
    with world() as machine:
        before = snapshot(machine)
        assert breaches(machine, before) == []
