"""The long connection comes back after every fault, and says when it cannot.

The rows of the first test are those in which the official SDK goes deaf or stops (measured with lark-oapi 1.7.5).
"""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from tests.support.harness.clock import HeldClock
from tests.support.lark import happenings
from tests.support.lark.faults import CallFault, SocketFaults
from tests.support.lark.stage import Stage, connected_stage, open_stage, running, until
from tiller_server.channels.lark.connection.parts import (
    PARTS,
    WAITING_BYTES,
    WAITING_EVENTS,
    PartJoiner,
)

ENDPOINT = "/callback/ws/endpoint"


async def serves(stage: Stage, *, opened: int) -> None:
    """Check that events arrive over the last of some connections."""
    sockets = stage.platform.sockets
    await until(lambda: (sockets.opened, len(sockets.connections)) == (opened, 1))
    sent = stage.platform.world.say("oc_group", "still here")
    await stage.platform.sockets.deliver(happenings.message(sent), message_id=sent.id)
    assert stage.sink.texts[-1] == "still here"


@pytest.mark.parametrize("code", [1000, 1011])
async def test_a_closed_connection_is_opened_again_at_once(code: int) -> None:
    async with connected_stage() as stage:
        await stage.platform.sockets.close(code)
        await serves(stage, opened=2)
        assert 0.0 in stage.clock.slept


async def test_a_reset_connection_is_opened_again() -> None:
    async with connected_stage() as stage:
        await stage.platform.sockets.reset()
        await serves(stage, opened=2)
        assert [state for state, _ in stage.sink.states] == [
            "connecting", "connected", "connecting", "connecting", "connected",
        ]  # fmt: skip


async def test_a_silent_connection_is_noticed_within_two_pings() -> None:
    async with connected_stage() as stage:
        sockets = stage.platform.sockets
        await until(lambda: 250.0 in stage.clock.slept and 120 in stage.clock.slept)
        stage.platform.socket_faults.is_silent = True
        stage.clock.advance(120)
        await until(lambda: sockets.pings == 2)
        stage.clock.advance(120)
        await until(lambda: sockets.pings == 3)
        stage.platform.socket_faults.is_silent = False
        assert sockets.opened == 1
        stage.clock.advance(10)
        await serves(stage, opened=2)
        assert "did not answer a ping for 250 s" in next(
            reason for _, reason in stage.sink.states if reason
        )


async def test_an_endpoint_that_hangs_is_given_up_after_ten_seconds() -> None:
    async with connected_stage() as stage:
        stage.platform.socket_faults.endpoint_hangs = True
        await stage.platform.sockets.reset()
        await until(lambda: stage.platform.calls.count(("POST", ENDPOINT)) == 2)
        stage.platform.socket_faults.endpoint_hangs = False
        await until(lambda: 10.0 in stage.clock.slept[-1:])
        stage.clock.advance(10)
        await until(lambda: 3.75 <= stage.clock.slept[-1] <= 5)
        stage.clock.advance(5)
        await serves(stage, opened=2)


async def test_a_handshake_that_hangs_is_given_up_after_ten_seconds() -> None:
    async with open_stage() as stage:
        stage.platform.socket_faults.handshake_hangs = 1
        async with running(stage):
            await until(lambda: stage.platform.socket_faults.handshake_hangs == 0)
            stage.clock.advance(10)
            await serves(stage, opened=1)


def waits(stage: Stage) -> list[float]:
    """Return the waits between attempts: what slept besides limits of calls and the timer of answers."""
    return [wait for wait in stage.clock.slept if wait not in {10.0, 15.0, 20.0}]


def by_body(code: int) -> Callable[[SocketFaults], None]:
    def apply(faults: SocketFaults) -> None:
        faults.endpoint_code = code

    return apply


def by_handshake(status: int, code: int = 0) -> Callable[[SocketFaults], None]:
    def apply(faults: SocketFaults) -> None:
        faults.handshake = (status, code)

    return apply


@pytest.mark.parametrize(
    ("refuse", "advice"),
    [
        pytest.param(by_body(403), "switch it on in the developer console", id="403"),
        pytest.param(by_body(514), "check channels.lark.appId", id="514"),
        pytest.param(by_body(1000040344), "set channels.lark.appId", id="no-credential"),
        pytest.param(by_body(1000040350), "stop other processes", id="connections"),
        pytest.param(
            by_handshake(403), "switch it on in the developer console", id="handshake-403"
        ),
        pytest.param(by_handshake(514, 1000040350), "stop other processes", id="handshake-514"),
    ],
)
async def test_a_refusal_is_degraded_and_tried_every_five_minutes(
    refuse: Callable[[SocketFaults], None], advice: str
) -> None:
    async with open_stage() as stage:
        refuse(stage.platform.socket_faults)
        async with running(stage):
            for attempt in range(1, 4):
                await until(lambda n=attempt: stage.clock.slept.count(300.0) == n)
                state, reason = stage.sink.states[-1]
                assert (state, advice in reason) == ("degraded", True), reason
                if attempt < 3:
                    stage.clock.advance(300)
            stage.platform.socket_faults.endpoint_code = 0
            stage.platform.socket_faults.handshake = None
            stage.clock.advance(300)
            await serves(stage, opened=1)


@pytest.mark.parametrize("code", [1, 1000040343])
async def test_a_busy_platform_is_tried_again_with_growing_waits(code: int) -> None:
    async with open_stage() as stage:
        stage.platform.socket_faults.endpoint_code = code
        async with running(stage):
            for attempt in range(8):
                await until(lambda n=attempt: len(waits(stage)) > n)
                if attempt < 7:
                    stage.clock.advance(waits(stage)[-1])
            first, *others = waits(stage)
            assert 0 <= first <= 5
            expected = [5, 10, 20, 40, 80, 120, 120]
            for wait, most in zip(others, expected, strict=True):
                assert most * 0.75 <= wait <= most
            assert [state for state, reason in stage.sink.states if reason] == [
                *["connecting"] * 3, *["degraded"] * 5,
            ]  # fmt: skip


async def test_a_platform_that_accepts_and_closes_at_once_is_not_asked_without_a_pause() -> None:
    async with open_stage() as stage:
        stage.platform.socket_faults.closes_at_once = True
        async with running(stage):
            await until(lambda: stage.platform.sockets.opened == 2)
            await until(lambda: any(3.75 <= wait <= 5 for wait in stage.clock.slept))
            assert stage.platform.sockets.opened == 2


async def test_settings_that_are_missing_keep_their_values_and_wrong_ones_are_bounded() -> None:
    async with open_stage() as stage:
        faults = stage.platform.socket_faults
        faults.config = {"PingInterval": 1, "ReconnectInterval": "soon", "ReconnectNonce": 999}
        faults.pong_config = {"PingInterval": 90}
        async with running(stage):
            await until(lambda: stage.platform.sockets.pings == 1)
            await until(lambda: stage.channel.connection.config.ping_s == 90)
            config = stage.channel.connection.config
            assert (config.reconnect_s, config.first_wait_s) == (120, 5)
            # The second ping is still due after the bounded interval of the first settings.
            await until(lambda: {5, 90} & set(stage.clock.slept))
            await stage.platform.sockets.close(1000)
            await until(lambda: len(stage.sink.states) > 3 or stage.clock.slept[-1] <= 5)


async def test_the_bot_that_cannot_be_read_is_tried_again() -> None:
    async with open_stage() as stage:
        stage.platform.faults.append(CallFault(path="/open-apis/bot", kind="garbage"))
        async with running(stage):
            await until(lambda: waits(stage))
            stage.clock.advance(5)
            await serves(stage, opened=1)
            assert "id of the bot" in next(reason for _, reason in stage.sink.states if reason)


async def test_the_state_is_stopped_after_the_end() -> None:
    async with open_stage() as stage:
        async with running(stage):
            await until(stage.sink.is_connected)
        assert stage.sink.states[-1] == ("stopped", "")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://x.test/?device_id=d&service_id=1&ticket=secret", "not an address of a WebSocket"),
        ("ws://127.0.0.1:1/?device_id=d&service_id=1&ticket=secret", "could not be opened"),
        ("ws://127.0.0.1:1/?device_id=d", "no address with device_id and service_id"),
        (
            "ws://127.0.0.1:1/?device_id=d&service_id=one",
            "no address with device_id and service_id",
        ),
    ],
)
async def test_an_address_that_cannot_be_used_is_named_without_its_ticket(
    url: str, reason: str
) -> None:
    async with open_stage() as stage:
        stage.platform.socket_faults.url = url
        async with running(stage):
            await until(lambda: any(waits(stage)))
            state, shown = next(entry for entry in stage.sink.states if entry[1])
            assert (state, reason in shown, "secret" in shown) == ("connecting", True, False)
            stage.platform.socket_faults.url = None
            stage.clock.advance(5)
            await serves(stage, opened=1)


async def test_an_event_that_is_stored_too_slowly_is_repeated_and_pings_go_on() -> None:
    async with connected_stage() as stage:
        sockets = stage.platform.sockets
        await until(lambda: 120 in stage.clock.slept)
        stage.clock.advance(115)
        stage.sink.hangs = True
        sent = stage.platform.world.say("oc_group", "slow")
        await sockets.push(happenings.message(sent), message_id="f1")
        await until(lambda: stage.clock.slept[-1] == 10.0)
        stage.clock.advance(5)
        await until(lambda: sockets.pings == 2)
        stage.sink.hangs = False
        stage.clock.advance(5)
        await until(lambda: sockets.acks)
        assert sockets.acks[0].code == 500
        await sockets.deliver(happenings.message(sent), message_id="f1")
        assert stage.sink.texts == ["slow"]


async def test_a_degraded_connection_stays_degraded_until_it_is_connected() -> None:
    async with open_stage() as stage:
        stage.platform.socket_faults.endpoint_code = 514
        async with running(stage):
            await until(lambda: 300.0 in stage.clock.slept)
            stage.platform.socket_faults.endpoint_code = 0
            stage.clock.advance(300)
            await serves(stage, opened=1)
            assert [state for state, _ in stage.sink.states] == [
                "connecting", "degraded", "connected",
            ]  # fmt: skip


def test_parts_of_events_that_never_end_are_bounded() -> None:
    parts = PartJoiner(HeldClock())
    for number in range(WAITING_EVENTS + 10):
        parts.add(f"f{number}", total=2, index=0, payload=b"x")
    assert parts.dropped == 10
    assert parts.add("f10", total=2, index=1, payload=b"y") == b"xy"
    for number in range(5):
        parts.add(f"g{number}", total=2, index=0, payload=bytes(WAITING_BYTES // 2))
    assert parts.add("g0", total=2, index=1, payload=b"") is None
    for index, total in ((2, 2), (-1, 2), (0, PARTS + 1)):
        assert parts.add("h", total=total, index=index, payload=b"") is None


async def test_an_encrypted_connection_is_checked_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    async with open_stage(tls=tls) as stage, running(stage):
        await until(lambda: any("certificate verify failed" in why for _, why in stage.sink.states))
        assert not stage.sink.is_connected()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with open_stage(tls=tls) as stage, running(stage):
        await serves(stage, opened=1)
