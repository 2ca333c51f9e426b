"""Names of people, which events leave out."""

from typing import Final, TypeVar

import msgspec

from agent_core.channels.messaging.port import DeliveryError, InboundClick, InboundMessage, Sender
from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.codes import LarkRefused
from tiller_server.channels.lark.api.deadline import within
from tiller_server.channels.lark.api.rest import ApiCall, LarkApi, read_fields

LOOKUP_S: Final = 1.0
KEPT_S: Final = 24 * 3600.0
REFUSED_S: Final = 3600.0
"""After this time a name that the app has no right to read is looked up again."""
FAILED_S: Final = 60.0
PEOPLE: Final = 2_000
_Authored = TypeVar("_Authored", InboundMessage, InboundClick)


class _User(Value, frozen=True):
    name: str = ""


class _UserInfo(Value, frozen=True):
    user: _User = _User()


class People:
    """The names of people by their `open_id`, for apps with the scope `contact:user.base:readonly`."""

    def __init__(self, api: LarkApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._names: dict[str, tuple[str, float]] = {}

    async def named(self, event: _Authored, *, limit_s: float = LOOKUP_S) -> _Authored:
        """Return an event with the name of its author; without one where it cannot be read in time."""
        sender = event.sender
        if sender.is_bot or sender.name or not sender.id:
            return event
        name = await self._name(sender.id, limit_s)
        return msgspec.structs.replace(event, sender=Sender(id=sender.id, name=name))

    async def _name(self, person: str, limit_s: float) -> str:
        name, until_s = self._names.get(person, ("", 0.0))
        if until_s > self._clock.monotonic_s():
            return name
        call = ApiCall(
            action="name a person",
            method="GET",
            path=f"/open-apis/contact/v3/users/{person}",
            query={"user_id_type": "open_id"},
        )
        try:
            data = await within(self._clock, limit_s, lambda: self._api.call(call))
            name, kept_s = read_fields(data, _UserInfo).user.name, KEPT_S
        except LarkRefused:
            kept_s = REFUSED_S
        except (DeliveryError, TimeoutError):
            kept_s = FAILED_S
        if len(self._names) >= PEOPLE:
            del self._names[next(iter(self._names))]
        self._names[person] = (name, self._clock.monotonic_s() + kept_s)
        return name
