"""`python -I -m tiller_server.daemon`: becomes the daemon of this user, or leaves quietly when there is one."""

import gc
import sys

if __name__ == "__main__":
    # Nothing of what is loaded now is ever garbage, and looking for some takes a tenth of the time until it serves.
    gc.disable()  # decision 0034
    from tiller_server.daemon.main import main

    sys.exit(main(sys.argv[1:]))
