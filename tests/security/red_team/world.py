"""A small machine to attack: a stand-in home, a folder beside it, a project with repositories, and a victim."""

import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.security.red_team.containment import Commands, Containment, boundaries
from tests.support.workspace.contained import require_full

SETTING_UP = r"""
set -eu
repository() {  # a repository with one commit and one hook
    git init -q --template= -b main "$1"
    echo "file of $1" > "$1/file.txt"
    git -C "$1" add file.txt
    git -C "$1" commit -q -m "first of $1"
    local at; at=$(git -C "$1" rev-parse --absolute-git-dir)
    mkdir -p "$at/hooks" "$at/info"
    echo "# hook of $1" > "$at/hooks/post-commit"
    echo "# attributes of $1" > "$at/info/attributes"
}
"""
PROJECT = r"""
repository "$ROOT"
cd "$ROOT"
mkdir -p .vscode .github/workflows docs src/deep node_modules/dep
echo 'print("code")' > code.py
echo 'the guide' > docs/guide.md
echo 'steer docs' > docs/AGENTS.md
echo 'steer' > AGENTS.md
echo '{"settings": 1}' > .vscode/settings.json
echo '{"servers": 1}' > .mcp.json
echo '# environment' > .envrc
echo '# npm of the project' > .npmrc
echo 'on: push' > .github/workflows/ci.yml
echo 'int deep;' > src/deep/main.c
echo 'exports.dep = 1' > node_modules/dep/index.js
echo node_modules > .gitignore
git add -A
git commit -q --amend --no-edit
mkdir -p "$SECOND/lib"
echo 'second' > "$SECOND/lib/second.txt"
echo 'steer second' > "$SECOND/AGENTS.md"
"""
HOME_FILES: Mapping[str, str] = {
    ".gitconfig": "[user]\n\tname = a\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n",
    ".ssh/id_ed25519": "key\n",
    ".npmrc": "//registry/:_authToken=secret\n",
    ".bashrc": "# mine\n",
    ".claude/skills/one/SKILL.md": "skill\n",
    "other/AGENTS.md": "other\n",
    "other/.vscode/tasks.json": "{}\n",
    "other/.mcp.json": "{}\n",
    "other/workflows/ci.yml": "on: push\n",
    "other/.git/HEAD": "ref: refs/heads/main\n",
    "other/.git/config": "[core]\n\tbare = false\n",
    "other/.git/hooks/pre-commit": "# theirs\n",
    "other/.git/objects/info/packs": "\n",
    "other/.git/refs/heads/.keep": "\n",
}


@dataclass(frozen=True, kw_only=True)
class World:
    """Where everything lies."""

    top: Path

    @cached_property
    def home(self) -> Path:
        """The stand-in home."""
        return self.top / "home"

    @cached_property
    def outside(self) -> Path:
        """A folder of the user that no workspace has."""
        return self.top / "outside"

    @cached_property
    def root(self) -> Path:
        """The project, in the home."""
        return self.home / "work" / "project"

    @cached_property
    def second(self) -> Path:
        """A second root of the workspace."""
        return self.home / "work" / "second"

    @cached_property
    def own(self) -> Path:
        """Folders as of the product."""
        return self.top / "own"

    @cached_property
    def quarantine(self) -> Path:
        """Where the clean-up puts what it takes away."""
        return self.own / "data" / "quarantine"

    @cached_property
    def marker(self) -> Path:
        """Written by every payload: code ran outside of containment."""
        return self.home / "PWNED"

    @cached_property
    def env(self) -> Mapping[str, str]:
        """The user's environment."""
        return {"PATH": os.defpath, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

    @cached_property
    def names(self) -> str:
        """Return assignments for scripts, which must not depend on what the environment inside has."""
        places = {
            "ROOT": self.root,
            "SECOND": self.second,
            "OUT": self.outside,
            "HOUSE": self.home,
            "MARK": self.marker,
        }
        return "; ".join(f"{name}={shlex.quote(str(path))}" for name, path in places.items())

    def as_user(self, script: str, *, cwd: Path | None = None) -> str:
        """Run a script as the user does, outside of containment, and return its output."""
        done = subprocess.run(
            ["bash", "-c", f"{self.names}\n{SETTING_UP}\n{script}"],
            cwd=cwd or self.root,
            env=dict(self.env),
            capture_output=True,
            check=False,
        )
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert done.returncode == 0, f"the user's own script failed: {text}\n{script}"
        return done.stdout.decode("utf-8", "replace")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Run git as the user does and return its output."""
        return self.as_user(shlex.join(["git", *words]), cwd=cwd)

    @cached_property
    def containment(self) -> Containment:
        """Full containment of the two roots; skips where the machine has none."""
        own = tuple(self.own / name for name in ("config", "data", "runtime"))
        bounds = boundaries(
            self.root, self.second, env=self.env, own=own, quarantine=self.quarantine
        )
        return Containment(boundaries=bounds, level=require_full(), env=self.env)

    @contextmanager
    def session(self) -> Generator[Commands]:
        """Open a session whose commands are contained."""
        with self.containment.opened() as commands:
            yield commands


@contextmanager
def world() -> Generator[World]:
    """Lay out a machine where full containment is required."""
    _ = require_full()
    with laid_out() as made:
        yield made


@contextmanager
def laid_out() -> Generator[World]:
    """Lay out a machine, not below /tmp, which is private inside; remove it at the end."""
    made = World(top=_top())
    try:
        for folder in (made.root, made.second, made.outside):
            folder.mkdir(parents=True)
        for name in ("config", "data", "runtime"):
            (made.own / name).mkdir(parents=True)
        for name, text in HOME_FILES.items():
            (made.home / name).parent.mkdir(parents=True, exist_ok=True)
            (made.home / name).write_text(text, "utf-8")
        (made.outside / "file").write_text("outside\n", "utf-8")
        made.as_user(PROJECT)
        yield made
    finally:
        shutil.rmtree(made.top, ignore_errors=True)


def _top() -> Path:
    for place in (Path(pwd.getpwuid(os.geteuid()).pw_dir), Path.cwd()):
        if os.access(place, os.W_OK):
            return Path(tempfile.mkdtemp(prefix=".tiller-test-", dir=place)).resolve()
    return Path(tempfile.mkdtemp(prefix="tiller-test-")).resolve()
