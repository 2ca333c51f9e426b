"""Edits as values: the differences between texts, and the merge of two changes of one text; pure."""
