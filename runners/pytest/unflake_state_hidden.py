"""Things that hide their contents: iterators, caches, random generators, arrays, streams, locks.

Each type has its own way to tell how far it is and what is in it, and most have a way back. Only the
exact types of Python and numpy are asked, so no code of the project runs.
"""

import array
import ast
import gc
import io
import itertools
import random
import sys
import threading
import types
import zlib
from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

from unflake_state_nodes import is_plain_key
from unflake_state_objects import Sight
from unflake_state_values import class_mro, count, show

BYTES_LIMIT = 4 * 1024 * 1024  # larger arrays and streams are not looked into
USED_UP = "used up"
CACHE: Any = type(lru_cache(maxsize=None)(len))
RANDOM: Any = next(kind for kind in class_mro(random.Random) if kind.__module__ == "_random")
INDEXED: Tuple[Any, ...] = (iter([]), iter(()), iter(""), iter(b""), iter(bytearray()))
RANGES: Tuple[Any, ...] = (iter(range(0)), iter(range(2**70)))
COUNTED: Tuple[Any, ...] = (iter({}), iter({}.values()), iter({}.items()), iter(set()), reversed([]))


def sights() -> Dict[int, Sight]:
    """The ways to look into hidden types, by the type's id."""
    found = {
        CACHE: Sight("cache", take_cache, show_cache, put_cache),
        itertools.count: Sight("iterator", take_count, str, put_count),
        enumerate: Sight("iterator", take_enumerate, show_progress),
        types.GeneratorType: Sight("iterator", take_generator, show_generator),
        bytearray: Sight("item", bytes, show_bytes, put_bytearray),
        array.array: Sight("item", take_array, show_bytes, put_array),
        io.BytesIO: Sight("stream", take_stream, show_stream, put_stream),
        io.StringIO: Sight("stream", take_stream, show_stream, put_stream),
        type(threading.Lock()): Sight("lock", take_lock, show_lock, put_lock),
    }
    for one in INDEXED:
        found[type(one)] = Sight("iterator", take_index, show_progress, put_index, keep_sequence)
    for numbers in RANGES:
        found[type(numbers)] = Sight("iterator", take_left, show_left, put_range, keep_reduced)
    for other in COUNTED:
        found[type(other)] = Sight("iterator", take_left, show_left)
    by_type = {id(kind): sight for kind, sight in found.items()}
    by_type.update(numpy_sights())
    return by_type


def checksum(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


# --- caches and iterators -----------------------------------------------------------------------


def take_cache(cache: Any) -> Tuple[int, int]:
    info = CACHE.cache_info(cache)
    # A full cache drops a result for each that it takes in.
    return info.currsize, info.misses if info.currsize == info.maxsize else 0


def show_cache(token: Tuple[int, int]) -> str:
    return count(token[0], "cached result")


def put_cache(cache: Any, _token: Any, _kept: Any) -> None:
    CACHE.cache_clear(cache)


def take_index(iterator: Any) -> Any:
    state = iterator.__reduce__()
    return state[2] if len(state) > 2 else USED_UP


def keep_sequence(iterator: Any) -> Any:
    """The collection that it iterates over: an iterator that is used up has let go of it."""
    return iterator.__reduce__()[1][0]


def put_index(iterator: Any, token: Any, kept: Any) -> Any:
    if token == USED_UP:
        return None
    if take_index(iterator) == USED_UP:
        iterator = type(kept).__iter__(kept)
    iterator.__setstate__(token)
    return iterator


def show_progress(token: Any) -> str:
    return USED_UP if token == USED_UP else f"{count(token, 'element')} taken"


def take_left(iterator: Any) -> int:
    return int(iterator.__length_hint__())


def show_left(token: int) -> str:
    return f"{count(token, 'element')} left" if token else USED_UP


def keep_reduced(iterator: Any) -> Any:
    """The way to make an iterator that is as far as this one is now."""
    return iterator.__reduce__()


def put_range(_iterator: Any, _token: int, kept: Any) -> Any:
    make, parts, *index = kept
    fresh = make(*parts)
    if index and index[0] is not None:  # Before Python 3.12 the range is told from its beginning.
        fresh.__setstate__(index[0])
    return fresh


def take_enumerate(iterator: Any) -> int:
    return int(iterator.__reduce__()[1][1])


def take_count(counter: Any) -> str:
    # An iterator that counts in the project's own numbers would have to ask them.
    return repr(counter) if all(map(is_plain_key, gc.get_referents(counter))) else "count(…)"


def put_count(_counter: Any, token: str, _kept: Any) -> Any:
    return itertools.count(*ast.literal_eval(f"[{token[len('count(') : -1]}]"))


def take_generator(generator: Any) -> Any:
    frame = generator.gi_frame
    if frame is None:
        return None
    # Before Python 3.11 one that has not begun stands at -1.
    has_begun = getattr(generator, "gi_suspended", frame.f_lasti >= 0)
    return frame.f_lasti if has_begun else -1


def show_generator(token: Any) -> str:
    if token is None:
        return USED_UP
    return "not begun" if token < 0 else f"waits at instruction {token}"


# --- random generators --------------------------------------------------------------------------


def random_sight() -> Sight:
    return Sight("random", RANDOM.getstate, show_random, put_random)


def show_random(token: Any) -> str:
    return f"state {checksum(repr(token).encode())}"


def put_random(generator: Any, token: Any, _kept: Any) -> None:
    RANDOM.setstate(generator, token)


def numpy_sights() -> Dict[int, Sight]:
    """The ways for numpy, if it is loaded."""
    numpy = sys.modules.get("numpy")
    if type(numpy) is not types.ModuleType or "ndarray" not in numpy.__dict__:
        return {}
    found = {id(numpy.__dict__["ndarray"]): Sight("item", take_ndarray, show_ndarray, put_ndarray)}
    generators = sys.modules.get("numpy.random")
    for name, get, put in (
        ("RandomState", take_legacy, put_legacy),
        ("Generator", take_generator_state, put_generator_state),
    ):
        if generators is not None and name in generators.__dict__:
            found[id(generators.__dict__[name])] = Sight("random", get, show_random, put)
    return found


def take_legacy(generator: Any) -> Any:
    name, keys, *rest = generator.get_state(legacy=True)
    return (name, keys.tobytes(), *rest)


def put_legacy(generator: Any, token: Any, _kept: Any) -> None:
    numpy: Any = sys.modules["numpy"]
    generator.set_state((token[0], numpy.frombuffer(token[1], dtype="uint32"), *token[2:]))


def take_generator_state(generator: Any) -> str:
    return repr(generator.bit_generator.state)


def put_generator_state(generator: Any, token: str, kept: Any) -> None:
    state = generator.bit_generator.state
    if "array" in token:
        raise ValueError(f"the state of {state['bit_generator']} cannot be put back")
    generator.bit_generator.state = ast.literal_eval(token)


# --- arrays, streams and locks ------------------------------------------------------------------


def take_ndarray(array: Any) -> Any:
    if array.dtype.hasobject or array.nbytes > BYTES_LIMIT:
        return None
    return str(array.dtype), array.shape, array.tobytes()


def show_ndarray(token: Any) -> str:
    if token is None:
        return "<ndarray>"
    dtype, shape, data = token
    numpy: Any = sys.modules["numpy"]
    if len(data) <= 512 and dtype[0] in "biuf<>":
        return str(show(numpy.frombuffer(data, dtype=dtype).reshape(shape).tolist()))
    return f"<ndarray of {dtype}, shape {shape}, checksum {checksum(data)}>"


def put_ndarray(array: Any, token: Any, _kept: Any) -> None:
    numpy: Any = sys.modules["numpy"]
    numpy.copyto(array, numpy.frombuffer(token[2], dtype=array.dtype).reshape(token[1]))


def show_bytes(token: Any) -> str:
    data = token if type(token) is bytes else token[1]
    return str(show(data)) if len(data) <= 60 else f"<{count(len(data), 'byte')}, checksum {checksum(data)}>"


def put_bytearray(data: Any, token: bytes, _kept: Any) -> None:
    data[:] = token


def take_array(data: Any) -> Tuple[str, bytes]:
    return data.typecode, data.tobytes()


def put_array(data: Any, token: Tuple[str, bytes], _kept: Any) -> None:
    del data[:]
    data.frombytes(token[1])


def take_stream(stream: Any) -> Optional[Tuple[int, Any]]:
    """Position and contents; `None` if it is closed."""
    return None if stream.closed else (stream.tell(), stream.getvalue())


def show_stream(token: Any) -> str:
    return "closed" if token is None else f"at {token[0]} of {show(token[1], 150)}"


def put_stream(stream: Any, token: Any, _kept: Any) -> Any:
    if token is None:
        raise ValueError("it was closed")
    if stream.closed:
        stream = type(stream)()
    stream.seek(0)
    stream.truncate()
    stream.write(token[1])
    stream.seek(token[0])
    return stream


def take_lock(lock: Any) -> bool:
    return bool(lock.locked())


def show_lock(token: bool) -> str:
    return "held" if token else "free"


def put_lock(lock: Any, token: bool, _kept: Any) -> None:
    if token:
        lock.acquire(False)
    elif lock.locked():
        lock.release()
