"""Reminders with a time at which they are due."""

import json
import time


class Reminders:
    def __init__(self):
        self._entries = []

    def add(self, text, in_seconds):
        self._entries.append({"text": text, "due": time.time() + in_seconds})

    def due(self):
        now = time.time()
        return [entry["text"] for entry in self._entries if entry["due"] <= now]

    def seconds_left(self, text):
        for entry in self._entries:
            if entry["text"] == text:
                return max(0, entry["due"] - time.time())
        raise KeyError(text)

    def dump(self):
        return json.dumps(self._entries)

    @classmethod
    def load(cls, dumped):
        made = cls()
        made._entries = json.loads(dumped)
        return made
