"""An ordinary day of work asks rarely where commands are contained, and never twice what was answered for good."""

from dataclasses import replace

from agent_core.workspace.permissions.call_permission import Needs, SandboxLevel
from agent_core.workspace.permissions.policy import Allow, Ask, PolicyContext, decide
from tests.workspace.permissions.policy.world import World

MOST_QUESTIONS = 5
# A command, how often it comes in the day, and whether it wants the network.
DAY = [
    ("git status", 14, ""), ("git diff", 12, ""), ("git diff --stat HEAD~1", 4, ""), ("git log --oneline -20", 5, ""),
    ("git add -A && git commit -m 'Fix the parser'", 6, ""), ("git checkout -b fix/parser", 2, ""), ("git stash", 2, ""),
    ("ls -la", 8, ""), ("ls src tests", 6, ""), ("cat pyproject.toml", 6, ""), ("find . -name '*.py' | head -50", 6, ""),
    ("rg -n 'def parse' src", 12, ""), ("grep -rn TODO src | wc -l", 4, ""), ("sed -n 1,80p src/parser.py", 8, ""),
    ("pytest -q", 16, ""), ("pytest -x tests/test_parser.py::test_names", 14, ""), ("pytest -q 2>&1 | tail -30", 10, ""),
    ("python -m pytest -q tests/test_cli.py", 6, ""), ("python - <<'EOF'\nprint(1)\nEOF", 5, ""), ("ruff check .", 8, ""),
    ("ruff format . && ruff check --fix .", 6, ""), ("mypy src", 5, ""), ("npm test -- --watch=false", 6, ""),
    ("npm run build", 4, ""), ("make -j4", 3, ""), ("rm -rf build dist", 3, ""), ("mkdir -p tmp && mv a.txt tmp/", 2, ""),
    ("for f in src/*.py; do wc -l $f; done", 3, ""), ("pip install -e .", 3, "network"), ("npm ci", 3, "network"),
    ("git fetch origin && git rebase origin/main", 3, "network"), ("git push origin HEAD", 3, "network"),
    ("curl -s https://example.org/schema.json -o schema.json", 2, "network"),
]  # fmt: skip


def live(world: World, situation: PolicyContext) -> tuple[int, list[str]]:
    """Live the day with a person who answers for good where they can; count questions, and those that came twice."""
    questions, again = 0, []
    answered: set[str] = set()
    most = max(times for _, times, _ in DAY)
    for hour in range(most):
        for command, times, needs in DAY:
            if hour >= times:
                continue
            wants: tuple[Needs, ...] = ("network",) if needs else ()
            found = decide(world.command(command, *wants), situation)
            if isinstance(found, Allow):
                continue
            assert isinstance(found, Ask)
            questions += 1
            again += [command] if command in answered else []
            rule = next((one.rule for one in found.options if one.kind == "allowProject"), None)
            if rule is not None:
                answered.add(command)
                situation = replace(situation, rules=situation.rules.with_rule(rule))
    return questions, again


def test_where_commands_are_contained_a_day_asks_at_most_five_times(world: World) -> None:
    assert sum(times for _, times, _ in DAY) == 200
    questions, again = live(world, world.situation(containment="full"))
    assert (questions <= MOST_QUESTIONS, again) == (True, [])


def test_without_containment_what_was_answered_for_good_is_not_asked_again(world: World) -> None:
    levels: tuple[SandboxLevel, ...] = ("partial", "none")
    for level in levels:
        questions, again = live(world, world.situation(containment=level))
        assert again == []
        assert questions < 200
