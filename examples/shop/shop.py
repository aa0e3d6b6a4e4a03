"""A very small shop."""

import json
import os
import tempfile

CART = []  # One cart for everybody: the mistake behind the state-dependent test.


def add(item, price):
    CART.append((item, price))


def total(discount=0.0):
    # The mistake behind the real failure: the discount is added.
    return sum(price for _, price in CART) * (1 + discount)


def tick(name):
    """How often `name` was asked in this demonstration, over all VMs: stands in for chance."""
    path = os.environ.get("SHOP_COUNTERS") or os.path.join(tempfile.gettempdir(), f"shop-{os.getuid()}.json")
    try:
        with open(path) as file:
            counters = json.load(file)
    except FileNotFoundError:
        counters = {}
    counters[name] = counters.get(name, 0) + 1
    with open(path, "w") as file:
        json.dump(counters, file)
    return counters[name]


def courier_distance():
    return 12 if tick("courier") % 5 == 1 else 3


def exchange_rate():
    """The service answers again from the third call on."""
    if tick("exchange") % 9 in (1, 2):
        raise ConnectionError("exchange.example: connection refused")
    return 1.08
