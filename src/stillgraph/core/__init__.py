"""What every layer stands on: places in the user's source, the catalogue of reasons, errors and logs."""
