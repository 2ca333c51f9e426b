"""A developer's ordinary day with an agent: 200 calls of tools, as sessions of real projects look."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from agent_core.kernel import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a tool."""

    tool: str
    arguments: JsonObject


def bash(command: str, *needs: str) -> Step:
    return Step(
        tool="bash", arguments={"command": command, **({"needs": list(needs)} if needs else {})}
    )


def write(path: str) -> Step:
    return Step(tool="write", arguments={"path": path, "content": "text\n"})


def read(path: str) -> Step:
    return Step(tool="read", arguments={"path": path})


MORNING = (
    bash("git status --short"),
    bash("git log --oneline -10"),
    bash("ls -la"),
    bash("cat pyproject.toml"),
    bash("rg -n 'def main' src"),
    read("README.md"),
    read("src/app.py"),
    bash("python -m pytest -x -q 2>&1 | tail -20"),
    bash("git diff HEAD~1 --stat"),
    bash("wc -l src/*.py tests/*.py | sort -n | tail -5"),
    write("src/app.py"),
    bash("pytest -q tests/test_app.py"),
    bash("ruff check src --fix"),
    bash("ruff format src tests"),
    bash("mypy src"),
    bash("sed -n '1,80p' src/config.py"),
    bash("sed -i 's/old_name/new_name/g' src/config.py"),
    write("tests/test_config.py"),
    bash("pytest -q tests/test_config.py -k 'not slow'"),
    bash("git add -A && git commit -m 'Rename the option'"),
)
INSTALLING = (
    bash("pip install 'httpx>=0.27'", "network"),
    bash("pip install -e '.[dev]'", "network"),
    bash("uv lock --upgrade-package httpx", "network"),
    bash("npm ci", "network"),
    bash("curl -fsSL https://example.com/openapi.json -o openapi.json", "network"),
    bash("git fetch origin", "network"),
    bash("git push origin HEAD", "network"),
)
FRONTEND = (
    bash("cd web && npm test -- --run"),
    bash("cd web && npm run build"),
    bash("cd web && npx tsc --noEmit"),
    bash("cd web && npx eslint src --ext ts,tsx"),
    read("web/package.json"),
    write("web/src/App.tsx"),
    bash("cat web/src/App.tsx | head -40"),
    bash('for f in web/src/*.tsx; do grep -c useState "$f"; done'),
    bash("mkdir -p web/src/hooks && touch web/src/hooks/useThing.ts"),
    write("web/src/hooks/useThing.ts"),
    bash("rm -rf web/dist"),
    bash("mv web/src/old.ts web/src/new.ts 2>/dev/null || true"),
)
DIGGING = (
    bash("find . -name '*.py' -newer pyproject.toml -not -path './.venv/*'"),
    bash("grep -rn TODO src | head"),
    bash("git blame -L 10,30 src/app.py"),
    bash("git show HEAD:src/app.py | head -60"),
    bash("python - <<'PY'\nimport json\nprint(json.load(open('data.json'))['name'])\nPY"),
    bash("python -c 'import sys; print(sys.version)'"),
    bash("timeout 60 python scripts/profile.py > profile.txt"),
    bash("diff -u a.txt b.txt"),
    bash("du -sh .[!.]* * | sort -h | tail"),
    bash("make test"),
    bash("cargo test --workspace"),
    bash("go vet ./..."),
    bash("sqlite3 app.db '.schema'"),
    bash("jq '.scripts' web/package.json"),
    read("docs/design.md"),
    write("docs/design.md"),
    bash("env | sort | head -5"),
    bash("ps aux | head -3"),
    bash("git stash && pytest -q; git stash pop"),
    bash("git checkout -b feature/limits"),
    bash("git rebase --abort || true"),
)
HABITS = (
    bash("pytest -q"),
    bash("git status"),
    bash("git diff"),
    write("src/limits.py"),
    read("src/limits.py"),
    bash("ruff check ."),
    bash("pytest -q tests/test_limits.py"),
)
RARE = (
    write("AGENTS.md"),
    bash("git config user.email dev@example.com", "gitConfig"),
)
CALLS = 200


def ordinary_day() -> tuple[Step, ...]:
    """Give the day: the larger jobs once or twice, the habits all the time, network and odd files now and then."""
    return tuple(islice(_day(), CALLS))


def _day() -> Iterator[Step]:
    yield from MORNING
    yield from INSTALLING
    yield from FRONTEND
    yield from RARE
    yield from DIGGING
    while True:
        yield from HABITS * 3
        yield from DIGGING
        yield from INSTALLING
        yield from FRONTEND
