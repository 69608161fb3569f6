"""`python -m onelayer.apps.cli`: the same as the command `onelayer`."""

import sys

from . import main

sys.exit(main())
