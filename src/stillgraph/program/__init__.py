"""What a capture gives, as frozen data: operations, regions, guards, effects and outputs."""
