"""`python -m marey` is the command line; with a script, or -m and a module, it profiles them."""

import sys

from marey import _call_main, _cli

if __name__ == "__main__":
    is_script = _call_main.is_wanted(sys.argv[1:])
    sys.exit(_call_main.main(sys.argv[1:]) if is_script else _cli.main())
