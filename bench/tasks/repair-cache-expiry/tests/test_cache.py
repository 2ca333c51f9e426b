import unittest

from cache import Cache


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.now = 0
        self.cache = Cache(lambda: self.now, limit=2, ttl=10)

    def test_get(self):
        self.cache.put("a", 1)
        self.assertEqual(self.cache.get("a"), 1)
        self.assertEqual(self.cache.get("b", 0), 0)

    def test_expired(self):
        self.cache.put("a", 1)
        self.now = 9
        self.assertEqual(self.cache.get("a"), 1)
        self.now = 10
        self.assertIsNone(self.cache.get("a"))

    def test_least_recently_used_goes_first(self):
        self.cache.put("a", 1)
        self.cache.put("b", 2)
        self.cache.get("a")
        self.cache.put("c", 3)
        self.assertEqual([self.cache.get(key) for key in "abc"], [1, None, 3])

    def test_expired_entries_take_no_room(self):
        self.cache.put("a", 1)
        self.now = 5
        self.cache.put("b", 2)
        self.now = 10
        self.cache.get("b")
        self.cache.put("c", 3)
        self.assertEqual(self.cache.get("b"), 2)
        self.assertEqual(len(self.cache), 2)
