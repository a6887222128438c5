from facade import *
from facade import __version__ as __version__
