"""A queue of jobs."""


class JobQueue:
    def __init__(self):
        self._jobs = []

    def put(self, job):
        self._jobs.append(job)

    def take(self):
        return self._jobs.pop(0)
