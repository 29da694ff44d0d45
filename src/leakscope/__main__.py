"""``python -m leakscope``: the same as the ``leakscope`` command."""

import sys

from leakscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
