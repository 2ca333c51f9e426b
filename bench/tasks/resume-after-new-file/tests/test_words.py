import unittest


class WordsTest(unittest.TestCase):
    def test_count(self):
        from words.count import count

        self.assertEqual(count("It's one, one TWO."), {"it's": 1, "one": 2, "two": 1})
        self.assertEqual(count("über 12"), {"über": 1})

    def test_top(self):
        from words.top import top

        self.assertEqual(top("b a c b", 2), ["b", "a"])
        self.assertEqual(top("", 2), [])
