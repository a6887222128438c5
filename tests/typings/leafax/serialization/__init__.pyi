from facade.serialization import *
