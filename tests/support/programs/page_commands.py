"""Pages whose shell blocks run as printed: what each takes for granted, and which lines something else stands for."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.harness.shared import ROOT

PROJECT: Final = {
    "prices.py": "def total(prices):\n    amount = sum(prices)\n    return amuont\n",
    "test_prices.py": "import unittest\n\nfrom prices import total\n\n\nclass TotalTest(unittest.TestCase):\n"
    "    def test_total_is_the_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n",
}
"""A project whose test fails for a misspelt name."""
FILES: Final = PROJECT | {
    "src/shape.py": "SIDES = 4\n",
    "task.md": "Explain this project.\n",
}
REPOSITORY: Final = """
git config --file "$HOME/.gitconfig" user.name Ann
git config --file "$HOME/.gitconfig" user.email ann@example.com
export GIT_CONFIG_GLOBAL="$HOME/.gitconfig"
git init --quiet --initial-branch main && git add --all && git commit --quiet --message base
"""
TERMINAL: Final = """
terminal() { script --quiet --return --command "$1" /dev/null <<< /quit; }
"""
"""Types a command into a terminal, and then `/quit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What a page takes for granted, and what stands here for lines that cannot run."""

    before: str = ""
    """Shell lines that run first."""
    instead: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text of the page, and what runs in its place."""
    after: str = ""
    """Shell lines that check what the page promised."""


# The package is not on an index; tests/packages installs the wheel with its extras.
PIP: Final = "python -m pip --version"

STANDS: Final[Mapping[str, Stand]] = {
    "README.md": Stand(
        before=f'{TERMINAL}mkdir "$HOME/project" && cp *.py "$HOME/project"\n',
        instead={
            "pipx install . ": f"{PIP} ",
            "&& tiller\n": "&& terminal tiller\n",
            "tiller auth login anthropic ": "tiller auth login anthropic --key <<< sk-ant-none ",
            # No provider can be reached: the conversation is with the model of this test.
            'cd ~/project\ntiller "The tests fail. Please repair them." ': "cd ~/project\n"
            "tiller models use lab/m\nterminal 'tiller \"The tests fail. Please repair them.\"' ",
            "tiller -c  ": "terminal 'tiller -c' ",
        },
        after="tiller sessions list | grep --quiet 'Please repair'",
    ),
    "docs/acp-clients.md": Stand(
        before='acpx() { "$NODE" "$ACPX" --approve-all "$@"; }\n',
        # toad needs Python 3.14.
        instead={'toad acp "tiller acp" .\n': "tiller acp --help\n"},
    ),
    "docs/ci/plain-git.md": Stand(
        before=f"{REPOSITORY}git remote add origin . && git fetch --quiet\n",
        instead={
            "python3 -m venv /tmp/tiller\n": "",
            "/tmp/tiller/bin/": "",  # noqa: S108 - as the page prints it
            'pip install --quiet "tillerd==0.1.0"': PIP,
            "--model anthropic/claude-sonnet-4-5 ": "--model lab/m ",
        },
        after="test -s review.md && test -s review.json && test -s review.sarif",
    ),
    "docs/costs.md": Stand(
        before="tiller run hello\n",
        after='test "$(wc -l < costs.csv)" -gt 1 && head -n 1 costs.csv | grep --quiet ^day,calls',
    ),
    "docs/debugging.md": Stand(
        instead={
            # Debuggers are not installed everywhere; tests/daemon/test_attachable.py tests the switch.
            'gdb -p PID -batch -ex "thread apply all bt" ': "PID=$(tiller daemon status | "
            "sed -n 's/.*process \\([0-9]*\\).*/\\1/p') ",
            "py-spy dump --pid PID ": 'test -n "$PID" ',
            # It ends when it is told to, with the stacks that the page promises.
            ".venv/bin/python -I -X faulthandler -m tiller_server.daemon ": "tiller daemon stop\n"
            "python -I -X faulthandler -m tiller_server.daemon & ",
            "kill -ABRT PID ": "until tiller daemon status; do :; done\nkill -ABRT $! ",
            "#!/bin/sh\nexec tiller trace": "tiller trace",
            '-- tiller "$@"': "-- tiller lsp",
        },
        after='wait $! || test $? -eq 134; grep --quiet "most recent call first" "$TILLER_RUNTIME_DIR/daemon.log"',
    ),
    "docs/editors/README.md": Stand(
        # `make setup` has been done where tests run.
        instead={
            "make setup\n": 'mkdir -p .venv/bin && ln -s "$(command -v tiller)" .venv/bin/tiller\n'
        },
        after="~/.local/bin/tiller config get defaultModel | grep --quiet repair",
    ),
    "docs/evaluation.md": Stand(
        before=f'ln -s "{ROOT}/bench" bench\nexport TASK=repair-misspelt-name\n',
        instead={
            # One task of all, and the scripted model for one that needs a key.
            "tiller eval bench/tasks  ": "tiller eval bench/tasks --task $TASK ",
            "--model embedded/repair ": "--model embedded/repair --task $TASK ",
            "--model sonnet -k 3": "--model scripted --task $TASK -k 3",
            "bench/tasks --check ": "bench/tasks --task $TASK --check ",
        },
        after="test -s eval-results/report.html",
    ),
    "docs/mcp.md": Stand(
        # `npx` downloads the server; the one that the tests have answers in its place.
        before='mkdir npx-folder && printf "#!/bin/sh\\nexec $PYTHON $MCP_SERVER\\n" > npx-folder/npx\n'
        'chmod 700 npx-folder/npx && export PATH="$PWD/npx-folder:$PATH"\n',
    ),
    "docs/memory.md": Stand(before=REPOSITORY),
    "docs/review.md": Stand(
        before=f"{REPOSITORY}git branch feature && git remote add origin . && git fetch --quiet\n"
        "git switch --quiet feature && echo SIDES = 5 > src/shape.py && git commit --quiet --all --message five\n",
        after="test -s review.md && test -s review.sarif",
    ),
    "docs/rpc.md": Stand(instead={"#!/bin/sh\nexec tiller rpc": "tiller rpc < /dev/null"}),
    "docs/settings.md": Stand(),
    "docs/telemetry.md": Stand(
        before="tiller daemon start\n",
        instead={
            "pip install 'tillerd[otel]'": PIP,
            "/var/lib/node_exporter/": "./",
        },
        after="grep --quiet tiller_resident_memory_bytes tiller.prom",
    ),
    "docs/terminal/README.md": Stand(
        before=f"{REPOSITORY}echo SIDES = 6 > src/shape.py\n"
        f'cp "{ROOT}/vscode-client/media/screenshot.png" screenshot.png\n',
        instead={
            "tiller worktree list  ": "git checkout --quiet . && tiller run --worktree -m embedded/repair"
            " 'The tests fail. Please repair them.'\n"
            "ID=$(basename \"$(git worktree list --porcelain | sed -n 's/^worktree //p' | tail -n 1)\")\n"
            "tiller worktree list ",
            "worktree diff ID ": 'worktree diff "$ID" ',
            "worktree merge ID ": 'worktree merge "$ID" ',
            "worktree remove ID ": 'worktree remove "$ID" ',
        },
        after="grep --quiet 'return amount' prices.py",
    ),
    "docs/terminal/json.md": Stand(
        after="jq --exit-status 'select(.type == \"result\")' events.jsonl"
    ),
    "docs/web.md": Stand(
        before="tiller run hello\n"
        'PORT=$("$PYTHON" -c \'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])\')\n'
        'RUNTIME="$TILLER_RUNTIME_DIR"\n',
        instead={
            "pip install 'tillerd[web]'": PIP,
            "tiller web\n": "tiller web --no-open --port $PORT & trap 'kill %1' EXIT\n"
            "curl --silent --retry 90 --retry-connrefused --retry-delay 1 http://127.0.0.1:$PORT/healthz\n",
            "7433": "$PORT",
            "tiller share 01a2 --expires 7d ": "tiller share \"$(tiller sessions list | awk '{ print $2 }' | head -n 1)\""
            " --expires 7d --yes ",
            "--revoke share-01a2…": "--revoke \"$(tiller share --list | grep --only-matching 'share-[0-9a-f-]*' | head -n 1)\"",
        },
    ),
}

READ_BY: Final[Mapping[str, str]] = {
    "docs/editors/emacs.md": "tests/support/programs/fresh_user.py",
    "docs/editors/neovim.md": "tests/support/programs/fresh_user.py",
    "docs/extensions.md": "tests/extensions/guide.py",
}
"""Pages whose blocks run in a test of their own, and the file that reads them."""

NOT_RUN: Final[Mapping[str, str]] = {
    "docs/channels.md": "needs an app of the platform; tests/slack and tests/lark run the commands against one on loopback",
    "docs/performance.md": "a benchmark of minutes; tests/architecture/test_bench_page.py makes the page from a file of figures",
    "docs/release.md": "builds everything that is shipped; tests/packages builds and installs each form",
    "docs/remote.md": "needs hosts of these names; tests/e2e/cli/test_cli_remote.py runs the command on sshd and podman",
}
"""Pages whose commands no test runs as printed, and why."""


def run_script(script: str, *, cwd: Path, env: Mapping[str, str]) -> None:
    """Run shell lines without a person at standard input; a line that fails fails the test, with all output."""
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
