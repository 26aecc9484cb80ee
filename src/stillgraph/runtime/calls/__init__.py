"""A static function's call: the program that fits is found, or captured, and run.

Gives `StaticFunction`, its cache, and the shadow check.
It must not know how a capture works.
"""
