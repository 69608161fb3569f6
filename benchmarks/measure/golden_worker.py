"""Runs commands of `onelayer` for `golden.py`, each in a fork of a process that has imported the package: seconds less for each.

Reads one JSON list per line, [words, folder, file for the output, seconds], and answers with the exit status.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import onelayer as ol
from onelayer.apps.cli import main as command
from page import options

NAMES = ("build", "gallery", "language", "load", "memorize", "set_function", "train")


def run(words: Sequence[str], folder: str, output: str, seconds: int) -> int:
    """The exit status of one command, in this process."""
    signal.alarm(seconds)  # ends the process
    os.chdir(folder)
    for number, name in ((0, os.devnull), (1, output), (2, f"{output}.errors")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    try:
        status = command(list(words))
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    return status


def main() -> None:
    options(__doc__).parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends at once, without a word
    for name in NAMES:
        getattr(ol, name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(run(*json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
