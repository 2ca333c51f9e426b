import unittest

from query import parse


class QueryTest(unittest.TestCase):
    def test_equal(self):
        self.assertTrue(parse("size=3 colour=red")({"size": 3, "colour": "red"}))
        self.assertFalse(parse("size=3 colour=red")({"size": 3, "colour": "blue"}))

    def test_no_condition(self):
        self.assertTrue(parse("")({"size": 3}))

    def test_numbers_are_compared_as_numbers(self):
        self.assertTrue(parse("size>=9")({"size": 10}))
        self.assertFalse(parse("size<9")({"size": "10"}))

    def test_texts_are_compared_as_texts(self):
        self.assertTrue(parse("name<b")({"name": "anna"}))

    def test_not_equal(self):
        self.assertTrue(parse("colour!=red")({"colour": "blue"}))
        self.assertFalse(parse("colour!=red")({}))

    def test_or(self):
        fits = parse("size>=3 colour=red or size<1")
        self.assertEqual(
            [fits({"size": size, "colour": "red"}) for size in (0, 1, 3)], [True, False, True]
        )

    def test_an_empty_group(self):
        for text in ("or size=1", "size=1 or", "a=1 or or b=2"):
            with self.assertRaises(ValueError):
                parse(text)
