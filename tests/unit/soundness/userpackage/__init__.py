"""A package whose submodules are imported late."""
