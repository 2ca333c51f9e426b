"""10,000 memory entries with 200 facts among them that questions in other words ask for."""

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from agent_core.kernel import SystemClock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.memory.index import MemoryIndex
from agent_core.memory.markdown import with_entry
from agent_core.memory.store import MemoryFileStore
from agent_core.memory.values import MemoryEntry, MemoryScope

DAY = "2026-11-28"
PROJECT = MemoryScope("p")

# Fact → question of a person who does not remember its words. {0} is a subject, as code and as people write it.
PAIRS = (
    ("The tests of {0} run with `make check-{0}`, never with pytest alone.", "how are the {0} tests started?"),
    ("{0} deploys from the branch `release`, on Tuesdays only.", "when may I do a deployment of {0}"),
    ("Migrations of {0} are written by hand; autogenerate loses the partial indexes.", "add a column with a migration to {0}"),
    ("{0} retries a failed request three times with exponential backoff.", "what happens if a request of {0} fails, is it retried?"),
    ("Time stamps in {0} are UTC milliseconds, not seconds.", "which unit do the timestamps of {0} have"),
    ("The owner of {0} is the platform team; ask in their channel before an API change.", "who owns {0}?"),
    ("{0} must stay compatible with Python 3.9 because the appliance ships it.", "can I use match statements in {0}, which python is needed"),
    ("Logs of {0} go to stderr as JSON; stdout carries the protocol.", "where does {0} write its logging"),
    ("The cache of {0} is invalidated by the version field, so bump it after a schema change.", "{0} shows old data, invalidating the cache"),
    ("Money amounts in {0} are Decimal in cents; floats are rejected by the linter.", "floating point amounts in {0}"),
    ("{0} reads its configuration once at start; changes need a restart.", "I edited the config of {0} and nothing changes"),
    ("Feature flags of {0} live in flags.toml and are removed after two releases.", "introduce a feature flag to {0}"),
    ("The flaky test of {0} is the websocket reconnection one; run it alone.", "a test of {0} is flaky on reconnecting"),
    ("{0} uses cursor pagination; offsets were removed for speed.", "paginate the results of {0}"),
    ("Generated code of {0} is in `gen/` and is never edited.", "may I edit generated files in {0}"),
    ("{0} speaks gRPC internally and REST only at the edge.", "is {0} called by grpc or by rest"),
    ("Passwords in {0} are hashed with argon2id; bcrypt hashes are migrated at login.", "hashing of a password in {0}"),
    ("The dashboards of {0} alert at 200 ms for the 99th percentile.", "at which latency does {0} alert on the dashboard"),
    ("{0} keeps deleted rows for 30 days before it purges them.", "how long are rows kept after deletion in {0}"),
    ("Pull requests for {0} need two approvals and a changelog entry.", "how many approvals does a pull request to {0} need"),
)  # fmt: skip
FIRST = (
    "billing",
    "ledger",
    "search",
    "upload",
    "session",
    "invoice",
    "shipping",
    "tenant",
    "webhook",
    "report",
)
SECOND = (
    "gateway",
    "sync",
    "worker",
    "parser",
    "router",
    "exporter",
    "scheduler",
    "indexer",
    "proxy",
    "mailer",
)
OTHER_FIRST = (
    "audit", "avatar", "backup", "badge", "banner", "basket", "beacon", "calendar", "catalog", "channel", "comment",
    "contact", "coupon", "device", "domain", "draft", "event", "export", "family", "forum", "geo", "graph", "group",
    "health", "image", "import", "inbox", "label", "layout", "license", "locale", "market", "media", "metric", "order",
    "payment", "photo", "policy", "price", "profile", "queue", "quota", "region", "review", "role", "rule", "sample",
)  # fmt: skip
SEEDED_SUBJECTS = 10
ENTRIES = 10_000


class SeededFact(Value, frozen=True):
    """A fact, and the question that asks for it."""

    text: str
    question: str


def seeded_facts() -> list[SeededFact]:
    """Return 200 facts; the fact names its subject as code does, the question as people do."""
    subjects = [(one, two) for one, two in zip(FIRST, SECOND, strict=True)][:SEEDED_SUBJECTS]
    facts: list[SeededFact] = []
    for number, (one, two) in enumerate(subjects):
        as_code = (f"{one}-{two}", f"{one}_{two}", f"{one.title()}{two.title()}")[number % 3]
        facts += [
            SeededFact(fact.format(as_code), question.format(f"{one} {two}"))
            for fact, question in PAIRS
        ]
    return facts


def corpus() -> list[str]:
    """Return all texts, the seeded ones scattered among the others."""
    texts = [fact.text for fact in seeded_facts()]
    others = list(_others())
    chance = random.Random(7)  # noqa: S311 - a fixed order
    chance.shuffle(others)
    texts += others[: ENTRIES - len(texts)]
    chance.shuffle(texts)
    return texts


def _others() -> Iterator[str]:
    """Return the same facts about other subjects, some of which share a word with a seeded one."""
    seeded = {*zip(FIRST, SECOND, strict=True)}
    for one, two in product((*FIRST, *OTHER_FIRST), SECOND):
        if (one, two) in seeded:
            continue
        for fact, _ in PAIRS:
            yield fact.format(f"{one}-{two}")


def memory_index(folder: Path) -> MemoryIndex:
    """Write the entries into the file of a project; return its index, which has not read them yet."""
    store = MemoryFileStore(folder, env={}, clock=SystemClock(), redactor=Redactor())
    path = store.path(PROJECT)
    path.parent.mkdir(parents=True)
    entries = (
        MemoryEntry(id=f"e{number}", scope=PROJECT, text=text, created=DAY, line=0)
        for number, text in enumerate(corpus())
    )
    written = [with_entry(" ", one).partition("\n\n")[2] for one in entries]
    if len(written) != ENTRIES:
        message = f"the corpus has {len(written)} entries, not {ENTRIES}"
        raise ValueError(message)
    _ = path.write_text("\n".join(written), "utf-8")
    return MemoryIndex(PROJECT, path=path, read=store.read_now)
