"""Each extension loads apart: one that fails is told, and the others are there."""

import pytest

from agent_core.extensions.discovery import DiscoveredExtension
from agent_core.extensions.loader import load
from agent_core.extensions.registry import Registrations
from agent_core.extensions.scope import ExtensionScope
from agent_core.kernel.errors import ContextStale, ExtensionBroken
from tests.support.hooks.extensions import Home, extended

GOOD = """
def extension(api):
    api.command("good")(lambda words, ctx: None)
"""
BROKEN = [
    pytest.param("def extension(api:\n", "SyntaxError", id="syntax"),
    pytest.param("import nothing_there\n", "ModuleNotFoundError", id="import"),
    pytest.param("X = 1\n", "has no function extension(api)", id="no-function"),
    pytest.param("extension = 3\n", "has no function extension(api)", id="not-a-function"),
    pytest.param("def extension():\n    pass\n", "TypeError", id="no-argument"),
    pytest.param(
        "def extension(api):\n    raise ValueError('no')\n", "ValueError: no", id="raises"
    ),
    pytest.param(
        "async def extension(api):\n    raise ValueError('no')\n", "no", id="raises-async"
    ),
    pytest.param("raise SystemExit(3)\n", "SystemExit: 3", id="exits"),
    pytest.param("raise KeyboardInterrupt\n", "KeyboardInterrupt", id="interrupts"),
    pytest.param("def extension(api):\n    api.on('nothing')\n", "no event 'nothing'", id="event"),
    pytest.param("def extension(api):\n    api.session_name\n", "not open while", id="too-early"),
    pytest.param(
        "def extension(api):\n    api.tool(lambda a, c: '')\n", "cannot be called", id="tool"
    ),
    pytest.param("def extension(api):\n    api.gone()\n", "AttributeError", id="attribute"),
    pytest.param(
        "def extension(api):\n    api.register_theme()\n", "colours are the client's", id="theme"
    ),
]


@pytest.mark.parametrize(("source", "why"), BROKEN)
async def test_one_that_fails_is_told_and_the_others_are_there(
    home: Home, source: str, why: str
) -> None:
    home.write("a_bad.py", source)
    home.write("good.py", GOOD)
    async with extended(home) as it:
        assert it.names == ["good"]
        assert [one.name for one in it.bench.session.resources.commands()] == ["good"]
        (told,) = it.problems
        assert told.startswith(f"{home.user}/a_bad.py: extension 'a_bad' was not loaded: ")
        assert why in told


async def test_a_name_of_signs_that_hide_is_written_out_wherever_it_is_told(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    name = b"bad\xff\x1b[2J.py".decode("utf-8", "surrogateescape")
    home.write(name, "raise ValueError('\\x1b]0;mine\\x07')\n")
    async with extended(home) as it:
        for told in (caplog.text, *it.problems):
            assert "bad\\udcff<U+001B>[2J.py" in told
            assert told.replace("\n", "").isprintable()


async def test_the_line_of_its_own_code_is_told(home: Home) -> None:
    home.write("bad.py", "\n\ndef extension(api):\n    return 1 / 0\n")
    async with extended(home) as it:
        assert f"({home.user}/bad.py, line 4)" in it.problems[0]


async def test_an_async_function_may_wait(home: Home) -> None:
    home.write(
        "slow.py",
        """
        import anyio
        async def extension(api):
            await anyio.sleep(0.01)
            api.command("slow")(lambda words, ctx: None)
        """,
    )
    async with extended(home) as it:
        assert list(it.host.offers.commands) == ["slow"]


HANGING = [
    pytest.param("import time\ndef extension(api):\n    time.sleep(3)\n", id="blocks"),
    pytest.param("import time\ntime.sleep(3)\n", id="blocks-at-import"),
    pytest.param(
        "import anyio\nasync def extension(api):\n    await anyio.sleep_forever()\n", id="waits"
    ),
    pytest.param(
        """
        import asyncio
        import anyio
        async def extension(api):
            while True:
                try:
                    await anyio.sleep_forever()
                except asyncio.CancelledError:
                    pass
        """,
        id="swallows-cancellation",
    ),
]


@pytest.mark.parametrize("source", HANGING)
async def test_one_that_does_not_end_is_left_to_itself(home: Home, source: str) -> None:
    path = home.write("hangs.py", source)
    number = iter(range(9))
    handed: list[ExtensionScope] = []

    def make_api(footing: ExtensionScope, registered: Registrations) -> object:
        handed.append(footing)
        return object()

    with pytest.raises(ExtensionBroken, match=r"did not come to an end within 0.1 s"):
        await load(
            DiscoveredExtension(name="hangs", origin="user", entry=path),
            make_api=make_api,
            new_id=lambda: f"{next(number)}",
            limit_s=0.1,
        )
    with pytest.raises(ContextStale):
        _ = handed[0].services


async def test_functions_can_be_given_by_the_program(home: Home) -> None:
    def mine(api) -> None:
        api.command("mine")(lambda words, ctx: None)

    async with extended(home, given=[mine]) as it:
        assert it.names == ["mine"]


async def test_state_of_two_sessions_is_apart(home: Home) -> None:
    home.write(
        "count.py",
        "seen = []\ndef extension(api):\n    seen.append(1)\n    api.flag(str(len(seen)))\n",
    )
    async with extended(home) as one, extended(home) as two:
        assert list(one.host.offers.flags) == list(two.host.offers.flags) == ["1"]
