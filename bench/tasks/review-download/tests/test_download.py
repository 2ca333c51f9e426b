import unittest
from pathlib import Path

from download import free_name, human, target


class DownloadTest(unittest.TestCase):
    def test_human(self):
        self.assertEqual([human(999), human(1500)], ["999 bytes", "1.5 kB"])

    def test_very_large(self):
        self.assertEqual(human(5 * 10**13), "50000.0 GB")

    def test_target(self):
        self.assertEqual(target("/tmp/d", "a.txt"), Path("/tmp/d").resolve() / "a.txt")

    def test_names_that_lead_out(self):
        for name in ("../d-other/a.txt", "..", "sub/a.txt"):
            with self.assertRaises(ValueError):
                target("/tmp/d", name)

    def test_free_name(self):
        self.assertEqual(free_name("a.txt", {"a.txt"}), "a-2.txt")
        self.assertEqual(free_name("a", {"a"}), "a-2")

    def test_third_free_name(self):
        self.assertEqual(free_name("a.txt", {"a.txt", "a-2.txt", "a-3.txt"}), "a-4.txt")
