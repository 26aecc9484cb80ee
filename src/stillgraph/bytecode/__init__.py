"""Front end 2: a symbolic interpreter of CPython's bytecode. It needs no source."""
