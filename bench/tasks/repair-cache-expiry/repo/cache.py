"""A cache with a limit of entries and of age, on a clock that is passed in."""

from collections import OrderedDict


class Cache:
    def __init__(self, clock, *, limit, ttl):
        self._clock = clock
        self._limit = limit
        self._ttl = ttl
        self._entries = OrderedDict()

    def get(self, key, default=None):
        if key not in self._entries:
            return default
        value, stored = self._entries[key]
        if self._clock() - stored > self._ttl * 2:
            del self._entries[key]
            return default
        self._entries.move_to_end(key)
        return value

    def put(self, key, value):
        if key not in self._entries and len(self._entries) >= self._limit:
            self._entries.popitem()
        self._entries[key] = (value, self._clock())

    def __len__(self):
        return len(self._entries)
