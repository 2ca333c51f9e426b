import tempfile
import unittest
from pathlib import Path

import config


class ConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def test_plain(self):
        path = self.write("main.cfg", "# head\na = 1\n\nb=x = y\n")
        self.assertEqual(config.load(path), {"a": "1", "b": "x = y"})

    def test_include(self):
        self.write("more/base.cfg", "include deep.cfg\na = 1\nb = 1\n")
        self.write("more/deep.cfg", "c = 3\na = 0\n")
        path = self.write("main.cfg", "a = 9\ninclude more/base.cfg\nb = 2\n")
        self.assertEqual(config.load(path), {"a": "1", "b": "2", "c": "3"})

    def test_twice_is_no_cycle(self):
        self.write("base.cfg", "a = 1\n")
        path = self.write("main.cfg", "include base.cfg\na = 2\ninclude base.cfg\n")
        self.assertEqual(config.load(path), {"a": "1"})

    def test_cycle(self):
        self.write("b.cfg", "include a.cfg\n")
        path = self.write("a.cfg", "include b.cfg\n")
        with self.assertRaisesRegex(config.ConfigError, "a.cfg -> b.cfg -> a.cfg"):
            config.load(path)

    def test_missing(self):
        path = self.write("main.cfg", "a = 1\ninclude gone.cfg\n")
        with self.assertRaisesRegex(config.ConfigError, "main.cfg:2.*gone.cfg"):
            config.load(path)
