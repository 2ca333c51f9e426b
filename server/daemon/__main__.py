"""`python -I -m server.daemon`: becomes the daemon of this user, or leaves quietly when there is one."""

import sys

from server.daemon.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
