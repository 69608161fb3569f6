"""Any finite set of samples, stored in one layer."""

from .construction import memorize as memorize
