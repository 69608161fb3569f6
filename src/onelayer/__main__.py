"""`python -m onelayer`: the command `onelayer`."""

import sys

from .apps.cli import main

sys.exit(main())
