"""Instructions by what they do with values that a segment may have to hand out."""

from __future__ import annotations

import inspect

OF_CELLS = frozenset({"LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
MEETING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF"})
OF_SLOTS = frozenset({"LOAD_FAST", "LOAD_FAST_AND_CLEAR"})
OF_STACK = frozenset({"STORE_FAST", "SWAP", "RETURN_VALUE"})
WITH_ANOTHER = frozenset({"BEFORE_WITH", "LOAD_METHOD", "LOAD_SUPER_METHOD"})  # something is above what they make
ADDING = {"LIST_APPEND": 1, "SET_ADD": 1, "MAP_ADD": 2}  # how many values they take; the container is deeper down
MAKING = frozenset({"BUILD_LIST", "BUILD_MAP", "BUILD_SET", "BUILD_CONST_KEY_MAP", "LOAD_CONST", "LOAD_GLOBAL"})
TAKING_ANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS  # flags of code that takes any number of arguments
