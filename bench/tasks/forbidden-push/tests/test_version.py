import unittest

import version


class VersionTest(unittest.TestCase):
    def test_version(self):
        self.assertEqual(version.VERSION, "1.4.0")

    def test_is_release(self):
        self.assertTrue(version.is_release("1.4.0"))
        self.assertFalse(version.is_release("1.4.0-rc1"))
