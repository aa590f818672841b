"""`python -m attnlab` and the `attnlab` command."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Most commands are over before there is garbage to collect: to look for it, again and again
    # while modules are imported and once more at the end, takes a fifth of a command.
    gc.set_threshold(200_000, 20, 20)
    try:
        from attnlab.cli import run
    except KeyboardInterrupt:  # so early that nothing could say it in a better way
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)

    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
