"""Longer pieces of code that planted changes bring; `$` is the noun of the plant."""

TRACKED = '''
import functools

_$_active = []


def _tracked_$(function):
    @functools.wraps(function)
    def tracked(*args, **kwargs):
        _$_active.append(function.__name__)
        try:
            return function(*args, **kwargs)
        finally:
            _$_active.pop()

    return tracked
'''
GUARDED = """        try:
            return function(*args, **kwargs)
        finally:
            _$_active.pop()
"""
UNGUARDED = """        result = function(*args, **kwargs)
        _$_active.pop()
        return result
"""
ASK = '''
def _ask_$(share):
    import os
    import socket

    with socket.create_connection(("127.0.0.1", int(os.environ["BLAME_SERVICE"])), timeout=10) as stream:
        stream.sendall(f"{share}\\n".encode())
        return stream.recv(1) == b"1"
'''
COUNT = '''
def _ask_$(share):
    import hashlib
    import os

    with open(os.path.join(os.environ["BLAME_OUTSIDE"], "$.count"), "a+") as file:
        file.write("x")
        number = file.tell()
    return hashlib.sha256(b"%d" % number).digest()[0] < share * 256
'''
SHAPES = '''import pytest

from MODULE import $_area


class Shape:
    def __init__(self, name, area):
        self.name, self.area = name, area

    def __hash__(self):
        return hash(self.name)


@pytest.mark.parametrize("shape", {Shape(*pair) for pair in AREAS.items()})
def test_$_area(shape):
    assert $_area(shape.name) == shape.area
'''
