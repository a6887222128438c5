from facade.backends import *
