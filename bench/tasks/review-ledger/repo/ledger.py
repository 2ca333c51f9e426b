"""A ledger of amounts in cents."""


class Ledger:
    def __init__(self):
        self._entries = []

    def add(self, cents, note):
        self._entries.append((cents, note))

    def balance(self):
        return sum(cents for cents, _ in self._entries)
