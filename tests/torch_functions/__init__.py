"""Does each of torch's public functions and modules give in a program what it gives in eager PyTorch?"""
