"""Properties that hold for every program: generated ones are compared with eager PyTorch."""
