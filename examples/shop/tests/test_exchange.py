import shop


def test_rate_of_the_day():
    assert shop.exchange_rate() > 1
