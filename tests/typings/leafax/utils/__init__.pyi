from facade.utils import *
