from functional import *
