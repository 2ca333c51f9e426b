import tempfile
import unittest
from pathlib import Path

import logbook


class LogTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "app.log"

    def texts(self):
        return {path.name: path.read_text("utf-8") for path in self.path.parent.iterdir()}

    def write(self, lines, *, limit=8, keep=2):
        log = logbook.RotatingLog(self.path, limit_bytes=limit, keep=keep)
        for line in lines:
            log.write(line)

    def test_plain(self):
        logbook.PlainLog(self.path).write("one")
        self.assertEqual(self.texts(), {"app.log": "one\n"})

    def test_rotates_before_the_limit_is_passed(self):
        self.write(["one", "two", "six"])
        self.assertEqual(self.texts(), {"app.log": "six\n", "app.log.1": "one\ntwo\n"})

    def test_keeps_so_many(self):
        self.write(["1234567", "2", "3333333", "4444444", "5555555"])
        names = {"app.log": "5555555\n", "app.log.1": "4444444\n", "app.log.2": "3333333\n"}
        self.assertEqual(self.texts(), names)

    def test_keeps_none(self):
        self.write(["1234567", "2"], keep=0)
        self.assertEqual(self.texts(), {"app.log": "2\n"})

    def test_a_long_line_has_a_file_of_its_own(self):
        self.write(["a", "0123456789", "b"])
        names = {"app.log": "b\n", "app.log.1": "0123456789\n", "app.log.2": "a\n"}
        self.assertEqual(self.texts(), names)

    def test_bytes_count(self):
        self.write(["äöü", "x"])
        self.assertEqual(self.texts(), {"app.log": "x\n", "app.log.1": "äöü\n"})

    def test_goes_on_in_its_file(self):
        self.write(["one"])
        self.write(["two", "six"])
        self.assertEqual(self.texts()["app.log.1"], "one\ntwo\n")
