import os
import unittest

import settings


class SettingsTest(unittest.TestCase):
    def setUp(self):
        old = os.environ.pop("SERVICE_TOKEN", None)
        if old is not None:
            self.addCleanup(os.environ.__setitem__, "SERVICE_TOKEN", old)
        self.addCleanup(os.environ.pop, "SERVICE_TOKEN", None)

    def test_token(self):
        os.environ["SERVICE_TOKEN"] = "abc"
        self.assertEqual(settings.token(), "abc")

    def test_blanks(self):
        os.environ["SERVICE_TOKEN"] = " abc\n"
        self.assertEqual(settings.token(), "abc")

    def test_empty(self):
        os.environ["SERVICE_TOKEN"] = " "
        with self.assertRaisesRegex(LookupError, "SERVICE_TOKEN"):
            settings.token()
