import unittest

from jobs import JobQueue


class QueueTest(unittest.TestCase):
    def test_run(self):
        queue = JobQueue()
        queue.put(1)
        queue.put(2)
        self.assertEqual(queue.run(lambda job: job * 2), [2, 4])

    def test_so_many_tries(self):
        calls = []
        queue = JobQueue(tries=2)
        queue.put("a")

        def fail(job):
            calls.append(job)
            raise OSError

        self.assertEqual(queue.run(fail), [])
        self.assertEqual((calls, queue.lost), (["a", "a"], ["a"]))

    def test_an_interrupt_ends_it(self):
        queue = JobQueue()
        queue.put("a")

        def interrupt(_):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            queue.run(interrupt)

    def test_lost_is_a_copy(self):
        queue = JobQueue()
        queue.lost.append("a")
        self.assertEqual(queue.lost, [])
