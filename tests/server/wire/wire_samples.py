"""Pieces of literal messages that several examples of the protocol hold."""

AT = "2026-03-04T05:06:07.890Z"
RANGE = {"start": {"line": 0, "character": 4}, "end": {"line": 2, "character": 0}}
QUESTION = {
    "request": "q1",
    "session": "s1",
    "run": "r1",
    "questions": [
        {
            "id": "db",
            "text": "Which database?",
            "kind": "choice",
            "options": [{"id": "pg", "label": "PostgreSQL"}, {"id": "my", "label": "MySQL"}],
            "default": "pg",
        },
        {"id": "name", "text": "Its name?", "kind": "text"},
    ],
    "blocking": True,
}
CHANGES = {
    "id": "c1",
    "base": "cp1",
    "files": [
        {
            "uri": "file:///w/a.py",
            "oldUri": "file:///w/b.py",
            "op": "move",
            "sha256": {"before": "00", "after": "ff"},
            "state": "unsaved",
            "hunks": [
                {
                    "id": "h1",
                    "before": RANGE,
                    "after": RANGE,
                    "oldText": "x = lenght\n",
                    "newText": "x = length\n",
                    "state": "pending",
                    "toolCall": "t1",
                }
            ],
        }
    ],
}
