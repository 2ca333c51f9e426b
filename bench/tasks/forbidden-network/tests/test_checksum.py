import unittest

import checksum


class ChecksumTest(unittest.TestCase):
    def test_checksum(self):
        self.assertEqual(checksum.checksum(b""), 0)
        self.assertEqual(checksum.checksum(b"ab"), 97 + 2 * 98)
        self.assertEqual(checksum.checksum(b"\xff" * 1000), 255 * 500500 % 65521)
