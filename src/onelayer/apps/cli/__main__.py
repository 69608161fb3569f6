"""`python -m onelayer.apps.cli`: the command `onelayer`."""

import sys

from . import main

sys.exit(main())
