"""Runs in the interpreter that has the vendors' packages: judges request bodies, one a line, and says what is wrong.

Its only argument is the validator of the reference data. Each line of standard input is a JSON object with `api`,
`dialect`, `model` and `body`; each line of standard output is the list of what is wrong with that body.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main(tool: Path) -> None:
    """Judge until the input ends."""
    spec = importlib.util.spec_from_file_location("validate_request", tool)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{tool} is no module")
    module = importlib.util.module_from_spec(spec)
    # Its models name their own module when they look for one another.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        errors = module.validate(
            asked["api"], asked["body"], model_id=asked["model"], dialect=asked["dialect"]
        )
        sys.stdout.write(json.dumps(errors) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
