"""auth.json opens what it names and nothing else does; it is private, locked, and loses nothing."""

import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.kernel.errors import ConfigError, ModelUnknown, ProviderError
from agent_core.providers.auth.oauth import (
    InKeyring,
    LoginFailed,
    OAuthFacts,
    StoredKey,
    StoredTokens,
)
from agent_core.providers.auth.store import REFRESH_BEFORE_MS, AuthStore, LockTaken, locked
from agent_core.providers.catalog.models_file import read_models_file
from agent_core.providers.registry import ModelRegistry
from tests.providers.test_registry import APIS, PATH, Opened, opener
from tests.support.harness.clock import FakeClock

NOW_MS = 1_000_000_000
SOON = NOW_MS + REFRESH_BEFORE_MS
LATER = SOON + 1
KEY = {"type": "api_key", "key": "sk-stored"}
FRESH = StoredTokens(access="sk-new", refresh="sk-again", expires_ms=LATER * 2)
COPILOT = "github-copilot"


class Exchange:
    """Exchanges tokens and remembers how often it was asked."""

    def __init__(self, outcome: StoredTokens | Exception = FRESH) -> None:
        self.outcome = outcome
        self.asked: list[StoredTokens] = []
        self.began = anyio.Event()
        self.may_end = anyio.Event()
        self.may_end.set()

    async def __call__(self, facts: OAuthFacts, tokens: StoredTokens, now_ms: int) -> StoredTokens:
        self.asked.append(tokens)
        self.began.set()
        await self.may_end.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def written(tmp_path: Path, content: object, *, mode: int = 0o600) -> Path:
    path = tmp_path / "auth.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    path.chmod(mode)
    return path


def login(expires_ms: int) -> Mapping[str, object]:
    return {"type": "oauth", "access": "sk-old", "refresh": "sk-refresh", "expires": expires_ms}


def store(path: Path, exchange: Exchange | None = None) -> AuthStore:
    return AuthStore(path, clock=FakeClock(NOW_MS), refresh=exchange or Exchange())


def made(
    auth: AuthStore | None,
    *,
    providers: Any = None,
    keys: dict[str, str] | None = None,
    **environment: str,
) -> ModelRegistry:
    text = json.dumps({"providers": providers or {}})
    return ModelRegistry(
        openers=dict.fromkeys(APIS, opener),
        environment=environment,
        file=read_models_file(text, path=PATH),
        auth=auth,
        keys=keys,
    )


async def granted(registry: ModelRegistry, ref: str) -> tuple[str | None, bool]:
    model = registry.open(ref)
    assert isinstance(model, Opened)
    grant = await model.access.credentials()
    return grant.key, grant.bearer


GPT = "openai/gpt-5"


async def test_keys_are_looked_for_in_their_order(tmp_path: Path):
    auth = store(written(tmp_path, {"openai": KEY}))
    await auth.load()
    own = {"openai": {"apiKey": "sk-models"}}
    given = {"openai": "sk-given"}
    steps = [
        (
            made(auth, providers=own, keys=given, OPENAI_API_KEY="sk-env"),
            "sk-given",
            "given for this run",
        ),
        (made(auth, providers=own, OPENAI_API_KEY="sk-env"), "sk-stored", "auth.json"),
        (made(None, providers=own, OPENAI_API_KEY="sk-env"), "sk-models", "models.json"),
        (made(None, OPENAI_API_KEY="sk-env"), "sk-env", "environment (OPENAI_API_KEY)"),
    ]
    for registry, key, source in steps:
        assert await granted(registry, GPT) == (key, False)
        assert (registry.key_source("openai"), registry.auth("openai")) == (source, "ok")
    nothing = made(None)
    assert (nothing.key_source("openai"), nothing.auth("openai")) == (None, "missing")


async def test_what_is_stored_is_the_only_thing_that_opens_its_provider(tmp_path: Path):
    auth = store(written(tmp_path, {"openai": KEY | {"key": "$NOT_SET"}}))
    await auth.load()
    registry = made(auth, OPENAI_API_KEY="sk-env")
    with pytest.raises(ModelUnknown, match=r"set the environment variable NOT_SET$"):
        _ = registry.open(GPT)


async def test_stored_keys_may_be_variables_or_commands_and_have_values_of_their_own(
    tmp_path: Path,
):
    content = {
        "openai": {"type": "api_key", "key": "pre-$A-$B", "env": {"A": "own"}},
        "anthropic": {"type": "api_key", "key": "!echo sk-said"},
        "amazon-bedrock": KEY,
    }
    auth = store(written(tmp_path, content))
    await auth.load()
    registry = made(auth, A="theirs", B="b", PATH="/usr/bin:/bin")
    assert await granted(registry, GPT) == ("pre-own-b", False)
    assert await granted(registry, "anthropic/claude-haiku-4-5") == ("sk-said", False)
    assert await granted(registry, "amazon-bedrock/any") == ("sk-stored", True)


async def test_a_login_in_another_terminal_counts_from_the_next_request(tmp_path: Path):
    auth = store(written(tmp_path, {"openai": KEY}))
    await auth.load()
    model = made(auth).open(GPT)
    assert isinstance(model, Opened)
    other = store(auth.path)
    await other.put("openai", StoredKey(key="sk-later"))
    assert (await model.access.credentials()).key == "sk-later"


@pytest.mark.parametrize(
    ("expires_ms", "exchanges"),
    [(0, 0), (LATER, 0), (SOON, 1), (NOW_MS - 1, 1)],
    ids=["never ends", "ends later", "ends soon", "has ended"],
)
async def test_tokens_are_exchanged_five_minutes_before_they_end(
    tmp_path: Path, expires_ms: int, exchanges: int
):
    exchange = Exchange()
    auth = store(written(tmp_path, {COPILOT: login(expires_ms), "openai": KEY}), exchange)
    await auth.load()
    registry = made(auth)
    assert registry.key_source(COPILOT) == "auth.json (login)"
    assert await granted(registry, f"{COPILOT}/gpt-5-mini") == (
        "sk-new" if exchanges else "sk-old",
        True,
    )
    assert len(exchange.asked) == exchanges
    _ = await granted(registry, f"{COPILOT}/gpt-5-mini")
    assert len(exchange.asked) == exchanges, "the new ones last"
    on_disk = json.loads(auth.path.read_text("utf-8"))
    assert on_disk["openai"] == KEY
    if exchanges:
        assert on_disk[COPILOT]["refresh"] == "sk-again"


async def test_several_processes_exchange_once(tmp_path: Path):
    exchange = Exchange()
    path = written(tmp_path, {COPILOT: login(NOW_MS)})
    results: list[object] = []
    facts = made(None).providers()
    oauth = next(one.oauth for one in facts if one.id == COPILOT)

    async def ask() -> None:
        results.append(await store(path, exchange).fresh(COPILOT, oauth))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask)
    assert results == [FRESH] * 5
    assert len(exchange.asked) == 1


async def test_an_exchange_that_has_begun_is_finished_and_kept_though_nobody_waits(tmp_path: Path):
    exchange = Exchange()
    exchange.may_end = anyio.Event()
    auth = store(written(tmp_path, {COPILOT: login(NOW_MS)}), exchange)
    oauth = next(one.oauth for one in made(None).providers() if one.id == COPILOT)
    async with anyio.create_task_group() as group:
        group.start_soon(auth.fresh, COPILOT, oauth)
        await exchange.began.wait()
        group.cancel_scope.cancel()
        exchange.may_end.set()
    assert json.loads(auth.path.read_text("utf-8"))[COPILOT]["access"] == "sk-new"


async def test_a_refused_exchange_uses_what_still_lives_and_else_says_what_to_do(tmp_path: Path):
    refused = Exchange(LoginFailed("x answered 401: bad_refresh_token"))
    auth = store(written(tmp_path, {COPILOT: login(SOON)}), refused)
    await auth.load()
    assert await granted(made(auth), f"{COPILOT}/gpt-5-mini") == ("sk-old", True)
    ended = store(written(tmp_path, {COPILOT: login(NOW_MS)}), refused)
    await ended.load()
    with pytest.raises(ProviderError) as caught:
        _ = await granted(made(ended), f"{COPILOT}/gpt-5-mini")
    assert caught.value.reason == "auth"
    assert str(caught.value) == (
        "github-copilot cannot be asked: its login has ended and cannot be renewed "
        "(x answered 401: bad_refresh_token); sign in again (tiller auth login github-copilot)"
    )


async def test_what_is_written_is_private_whole_and_keeps_everything_else(tmp_path: Path):
    real = tmp_path / "dotfiles" / "auth.json"
    real.parent.mkdir()
    strange = {"type": "passkey", "x": 1}
    real.write_text(json.dumps({"later": strange, "openai": KEY}), "utf-8")
    real.chmod(0o644)
    link = tmp_path / "auth.json"
    link.symlink_to(real)
    auth = store(link)
    await auth.put("anthropic", StoredKey(key="sk-a", env={"A": "b"}))
    await auth.put("groq", InKeyring())
    await auth.put(COPILOT, FRESH)
    assert await auth.remove("openai")
    assert not await auth.remove("openai")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert json.loads(real.read_text("utf-8")) == {
        "later": strange,
        "anthropic": {"type": "api_key", "key": "sk-a", "env": {"A": "b"}},
        "groq": {"type": "keyring"},
        COPILOT: {
            "type": "oauth",
            "access": "sk-new",
            "refresh": "sk-again",
            "expires": FRESH.expires_ms,
        },
    }
    assert [path.name for path in real.parent.iterdir()] == ["auth.json"]


async def test_a_first_key_makes_the_folder_for_the_user_alone(tmp_path: Path):
    auth = store(tmp_path / "new" / "auth.json")
    await auth.load()
    assert (auth.problems, auth.entry("openai")) == ((), None)
    await auth.put("openai", StoredKey(key="k"))
    assert stat.S_IMODE(auth.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(auth.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ('{"openai": {"key": "sk-secret"', 1, 31, "not JSON"),
        ("[]", 1, 1, "must hold a JSON object"),
        ('{\n "openai": "sk-secret"}', 2, 12, "must be an object"),
        ('{\n "openai": {"type": "api_key"}}', 2, 12, "has no key"),
        ('{\n "openai": {"type": "api_key", "key": " "}}', 2, 12, "has no key"),
        ('{"openai": {"type": "oauth", "access": "sk-secret"}}', 1, 12, "has no access or refresh"),
        ('{"openai": {"type": "magic", "key": "sk-secret"}}', 1, 12, "its type must be"),
    ],
)
async def test_a_broken_file_is_told_with_its_place_and_no_secret(
    tmp_path: Path, text: str, line: int, column: int, what: str
):
    auth = store(written(tmp_path, text))
    await auth.load()
    registry = made(auth, OPENAI_API_KEY="sk-env")
    (problem,) = registry.problems
    assert (problem.path, problem.line, problem.column) == (auth.path, line, column)
    assert str(problem).startswith(f"{auth.path}:{line}:{column}: ")
    assert what in str(problem)
    assert "sk-" not in str(problem)
    assert await granted(registry, GPT) == ("sk-env", False)


async def test_a_file_that_is_no_json_is_never_written_over(tmp_path: Path):
    text = '{"openai": {"type": "api_key", "key": "sk-precious"},}'
    auth = store(written(tmp_path, text))
    for act in (auth.put("groq", StoredKey(key="k")), auth.remove("openai")):
        with pytest.raises(ConfigError, match="not JSON"):
            _ = await act
    assert auth.path.read_text("utf-8") == text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
async def test_a_file_that_others_can_read_is_told_and_still_used(tmp_path: Path):
    auth = store(written(tmp_path, {"openai": KEY}, mode=0o640))
    await auth.load()
    (problem,) = made(auth).problems
    assert str(problem) == (
        f"{auth.path} can be read by others (mode 0640); its keys are used, but run: chmod 600 {auth.path}"
    )
    assert await granted(made(auth), GPT) == ("sk-stored", False)


@pytest.mark.parametrize("raw", [b"\xff\xfe{}", b"x" * (1 << 21)], ids=["not UTF-8", "huge"])
async def test_a_file_that_cannot_be_text_is_told(tmp_path: Path, raw: bytes):
    path = tmp_path / "auth.json"
    path.write_bytes(raw)
    path.chmod(0o600)
    auth = store(path)
    await auth.load()
    assert len(auth.problems) == 1
    assert str(path) in str(auth.problems[0])


async def test_no_key_shows_in_any_repr(tmp_path: Path):
    auth = store(written(tmp_path, {"openai": KEY, COPILOT: login(LATER)}))
    await auth.load()
    registry = made(auth, keys={"groq": "sk-given"})
    shown = [
        auth.entry("openai"),
        auth.entry(COPILOT),
        vars(auth),
        registry,
        vars(registry),
        registry.open(GPT),
    ]
    assert not [one for one in shown if "sk-" in repr(one)]


async def test_the_lock_keeps_other_processes_out_until_its_holder_is_gone(tmp_path: Path):
    path = tmp_path / "auth.json"
    code = (
        "import fcntl,os,sys;fd=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT);"
        "fcntl.flock(fd,fcntl.LOCK_EX);print('held',flush=True);sys.stdin.read()"
    )
    async with await anyio.open_process([sys.executable, "-c", code, f"{path}.lock"]) as holder:
        assert holder.stdout is not None
        assert (await holder.stdout.receive()).startswith(b"held")
        with pytest.raises(LockTaken, match="held by another process"):
            async with locked(path, wait_s=0.1):
                pytest.fail("the lock was given twice")
        holder.kill()
    async with locked(path, wait_s=5):
        assert not path.exists()


async def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path,
):
    (tmp_path / "file").write_text("x", "utf-8")
    blocked = store(tmp_path / "file" / "auth.json")
    with pytest.raises(
        ConfigError, match=r"auth\.json cannot be written \(.*\); nothing was changed"
    ):
        await blocked.put("openai", StoredKey(key="sk-x"))


@pytest.mark.parametrize(
    ("expires", "kept"), [("1e999", 0), ("-5", 0), ("1e30", 0), ("12.7", 12), ('"soon"', 0)]
)
async def test_an_odd_moment_is_no_reason_to_fail(tmp_path: Path, expires: str, kept: int):
    text = f'{{"x": {{"type": "oauth", "access": "a", "refresh": "r", "expires": {expires}}}}}'
    auth = store(written(tmp_path, text))
    await auth.load()
    assert auth.entry("x") == StoredTokens(access="a", refresh="r", expires_ms=kept)


async def test_the_file_is_read_for_the_requests_of_one_second(tmp_path: Path):
    path, clock = written(tmp_path, {"openai": KEY}), FakeClock(NOW_MS)
    auth = AuthStore(path, clock=clock, refresh=Exchange())

    async def key_of(provider: str) -> object:
        return await auth.fresh(provider, None)

    def write(key: str) -> None:
        _ = path.write_text(json.dumps({"openai": {"type": "api_key", "key": key}}), "utf-8")

    registry = made(auth)
    _ = await registry.refresh()
    write("sk-after-the-look")
    assert await key_of("openai") == StoredKey(key="sk-stored")
    clock.advance(0.9)
    assert await key_of("openai") == StoredKey(key="sk-stored")
    clock.advance(0.2)
    assert await key_of("openai") == StoredKey(key="sk-after-the-look")
    write("sk-of-the-next-run")
    _ = await registry.refresh()
    assert await key_of("openai") == StoredKey(key="sk-of-the-next-run")
