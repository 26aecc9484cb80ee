"""ONNX files, with real `If` and `Loop`, and their session in onnxruntime.

Gives the writer and the session of `.onnx`.
It must not know the other formats.
"""
