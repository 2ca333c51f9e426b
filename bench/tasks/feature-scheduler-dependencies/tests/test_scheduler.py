import unittest

import scheduler
from scheduler import Job, order


class SchedulerTest(unittest.TestCase):
    def test_priority(self):
        self.assertEqual(order([Job("b"), Job("a"), Job("c", 5)]), ["c", "a", "b"])

    def test_nothing(self):
        self.assertEqual(order([]), [])

    def test_after(self):
        jobs = [Job("deploy", 9, after=("test",)), Job("test", after=["build"]), Job("build")]
        self.assertEqual(order(jobs), ["build", "test", "deploy"])

    def test_a_job_that_became_ready_is_placed_by_its_priority(self):
        jobs = [Job("a", 1), Job("b", 9, after=("a",)), Job("c")]
        self.assertEqual(order(jobs), ["a", "b", "c"])

    def test_unknown(self):
        with self.assertRaises(KeyError) as raised:
            order([Job("a", after=("x",))])
        self.assertEqual(raised.exception.args, ("x",))

    def test_cycle(self):
        jobs = [Job("free"), Job("b", after=("a",)), Job("a", after=("b",)), Job("c", after=("a",))]
        with self.assertRaises(scheduler.CycleError) as raised:
            order(jobs)
        self.assertEqual(list(raised.exception.names), ["a", "b", "c"])
