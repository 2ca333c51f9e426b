"""A timer that counts laps on a clock that is passed in."""


class LapTimer:
    def __init__(self, clock):
        self.clock = clock
        self.started = clock()
        self.laps = []

    def lap():
        now = self.clock()
        self.laps.append(now - self.started)
        self.started = now
        return self.laps[-1]

    def total(self):
        return sum(laps)
