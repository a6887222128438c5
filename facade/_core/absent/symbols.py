"""PyTorch's symbolic numbers: classes for `isinstance`; a length is a Python number here."""

from .stand_ins import refuse_class

_NUMBERS = "a length that a program is compiled for is a Python number"
SymInt = refuse_class("SymInt", _NUMBERS)
SymFloat = refuse_class("SymFloat", _NUMBERS)
SymBool = refuse_class("SymBool", _NUMBERS)
