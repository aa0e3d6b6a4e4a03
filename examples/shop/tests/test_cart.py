import shop


def test_add():
    shop.add("tea", 4)
    assert ("tea", 4) in shop.CART


def test_a_new_cart_is_empty():
    assert shop.CART == []


def test_discount():
    shop.CART[:] = [("tea", 4)]
    assert shop.total(discount=0.5) == 2
