"""A repository, a scripted model, and the review of what is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_core.assembly import SessionRequest
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider, write_config
from tests.support.workspace.repositories import Repository
from tiller_server.review.engine import review
from tiller_server.review.findings.result import Review
from tiller_server.review.options import ReviewOrder, ReviewWatcher

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reviewing:
    """Where reviews are made."""

    repository: Repository
    provider: LoopbackProvider
    dirs: TillerDirs
    env: Mapping[str, str] = field(default_factory=dict)

    def configure(self, *, model: Json | None = None, **settings: Any) -> None:
        """Write the user's configuration."""
        write_config(self.dirs.config, self.provider, model=model, settings=settings)

    def request(self, **others: Any) -> SessionRequest:
        """Give how sessions are opened."""
        env = {"PATH": "/usr/bin:/bin", **self.dirs.variables(), **self.env}
        given: Json = {"workspace": self.repository.root, "env": env}
        return SessionRequest(**(given | others))

    async def review(
        self, *turns: Json, watcher: ReviewWatcher | None = None, **order: Any
    ) -> Review:
        """Review `main...HEAD`, or as the order says, with what the model will say."""
        self.provider.script(list(turns))
        given: Json = {"base": "main", "head": "HEAD"}
        return await review(ReviewOrder(**(given | order)), self.request(), watcher=watcher)

    def told(self, number: int = 0) -> str:
        """Give all that a request told the model, the newest message last."""
        messages = self.provider.requests[number]["body"]["messages"]
        return "\n".join(str(message.get("content")) for message in messages)


def reports(*findings: Json, text: str = "") -> Json:
    """Make a turn that reports findings."""
    return {
        "text": text,
        "tool_calls": [{"name": "report_finding", "arguments": one} for one in findings],
    }


def a_report(path: str, line: int, evidence: str, **others: Any) -> Json:
    """Make the arguments of `report_finding`."""
    plain = {
        "path": path,
        "line": line,
        "severity": "error",
        "category": "bug",
        "title": f"Wrong in {path}",
        "message": "It is wrong.",
        "evidence": evidence,
        "confidence": 0.9,
    }
    return plain | others


def says(text: str) -> Json:
    """Make a turn of words."""
    return {"text": text}
