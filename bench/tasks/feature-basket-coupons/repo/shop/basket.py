"""A basket of articles with prices in cents."""


class Basket:
    def __init__(self):
        self._lines = []

    def add(self, article, cents, count=1):
        self._lines.append((article, cents, count))

    def total(self):
        return sum(cents * count for _, cents, count in self._lines)
