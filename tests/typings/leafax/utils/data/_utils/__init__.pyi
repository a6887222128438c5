from facade.utils.data._utils import *
