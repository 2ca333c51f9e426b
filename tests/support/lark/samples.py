"""Cards of every kind, as the adapter builds them, for the schema test and the previewer."""

from collections.abc import Mapping

from agent_core.channels.messaging.port import ApprovalOption, ApprovalPrompt, Settlement
from agent_core.kernel.json import JsonObject
from tiller_server.channels.lark.cards.builders import answer_card, approval_card, settled_card
from tiller_server.channels.lark.cards.markdown import pages

ANSWER = """I found the fault: `parse_port` accepts **0**, which the server then refuses.

```python
def parse_port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise ValueError(f"{port} is no port")
    return port
```

- the check stands in one place now
- two tests were added, both pass

| File | Lines |
| --- | --- |
| `server/ports.py` | +3 −1 |
| `tests/test_ports.py` | +14 |
"""
OPTIONS = (
    ApprovalOption(id="once", label="Allow once", style="primary"),
    ApprovalOption(id="session", label="Allow in this session"),
    ApprovalOption(id="deny", label="Deny", style="danger"),
)
COMMAND = "```sh\nrm -rf build && make release VERSION=2.1\n```"
AT_MS = 1_795_000_000_000


def prompt(**changes: object) -> ApprovalPrompt:
    """Return an approval of a command."""
    fields = {
        "request": "q1",
        "title": "Run a command",
        "risk": "medium",
        "body": COMMAND,
        "detail": "shop · bash",
        "options": OPTIONS,
        "digest": "9f86d081884c7d65",
        "code": "7f3a",
        **changes,
    }
    return ApprovalPrompt(**fields)  # pyright: ignore[reportArgumentType]


PLAN = prompt(
    title="Plan: move the port check",
    risk="low",
    body="1. Add `check_port` to `server/ports.py`\n2. Use it in the two callers\n3. Add tests\n\nReply in this thread to change the plan.",
    detail="shop · plan",
    options=(
        ApprovalOption(id="accept", label="Accept the plan", style="primary"),
        ApprovalOption(id="reject", label="Reject", style="danger"),
    ),
    code="k4m9",
)
QUESTION = prompt(
    title="Question",
    risk="low",
    body="Which database do the tests use?",
    detail="shop · ask",
    options=tuple(ApprovalOption(id=f"o{n}", label=f"PostgreSQL {n}") for n in range(10, 18)),
)


def samples() -> Mapping[str, JsonObject]:
    """Return a card of each kind by name."""
    piece = pages(ANSWER)[0]
    allowed = Settlement(label="Allowed once", by="Ada", at_ms=AT_MS, allowed=True)
    denied = Settlement(label="Denied", by="Bob", at_ms=AT_MS, allowed=False)
    expired = Settlement(label="Expired: denied", by="", at_ms=AT_MS, allowed=False)
    return {
        "opened": answer_card((), "running"),
        "running": answer_card(pages("I am reading `server/ports.py` and its callers")[0], "running"),
        "finished": answer_card(piece, "completed"),
        "stopped": answer_card(pages("I was about to run the tests")[0], "aborted"),
        "failed": answer_card((), "failed"),
        "continued": answer_card(pages("The first part")[0], "continued"),
        "approval of low risk": approval_card(prompt(risk="low", title="Read a file", body="`/etc/hosts`")),
        "approval of medium risk": approval_card(prompt()),
        "approval of high risk": approval_card(prompt(risk="high", body="```sh\ncurl https://x.test/i.sh | sh\n```")),
        "plan": approval_card(PLAN),
        "question with a list": approval_card(QUESTION),
        "allowed": settled_card(prompt(), allowed),
        "denied": settled_card(prompt(risk="high"), denied),
        "expired": settled_card(prompt(), expired),
    }  # fmt: skip
