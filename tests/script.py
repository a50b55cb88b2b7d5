"""Lines of Python as a program, like `python -c`, that `tests.forked` may fork.

python -m tests.script LINES ARGUMENT…
"""

import sys

if __name__ == "__main__":
    del sys.argv[0]
    exec(sys.argv[0], {"__name__": "__main__"})
