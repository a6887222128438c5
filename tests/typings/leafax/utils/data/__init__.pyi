from facade.utils.data import *
