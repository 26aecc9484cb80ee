"""A program without the Python that made it: `.pt2`, ONNX and further formats."""
