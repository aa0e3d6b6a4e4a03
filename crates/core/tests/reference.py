"""Writes reference.csv: what scipy and numpy say about thousands of samples, for reference.rs to check.

Run it with scipy and numpy installed: `python reference.py > reference.csv`. Every line is a formula, its
arguments, and the value. The corners are in it: no runs, all failures, the rates 0 and 1, a million runs.
"""

import random

import numpy
from scipy import stats

chance = random.Random(2019)


def sizes():
    """Numbers of runs from none to a million, and corners more often than chance would have them."""
    yield from (0, 1, 2, 3, 5, 10, 100, 1_000, 1_000_000)
    for _ in range(400):
        yield int(10 ** chance.uniform(0, 6))


def main() -> None:
    """Writes everything."""
    print("formula,failures,runs,rate,value")
    for runs in sizes():
        for rate in (0.0, 1.0, 10 ** chance.uniform(-5, 0), chance.random()):
            likely = numpy.random.default_rng(chance.randrange(2**32)).binomial(runs, min(rate * 1.2, 1))
            failures = chance.choice((0, runs, int(likely), min(runs, int(likely) + 3), chance.randint(0, runs)))
            greater = 1.0 if failures == 0 else stats.binom.sf(failures - 1, runs, rate)
            if runs > 0:
                test = stats.binomtest(failures, runs, rate, alternative="greater")
                assert abs(test.pvalue - greater) <= 1e-9 * greater, (failures, runs, rate)
                low, high = wilson(failures, runs)
                print(f"wilson-low,{failures},{runs},,{low!r}")
                print(f"wilson-high,{failures},{runs},,{high!r}")
                upper = 1.0 if failures == runs else stats.beta.ppf(0.975, failures + 1, runs - failures)
                print(f"highest-rate,{failures},{runs},,{float(upper)!r}")
            print(f"at-least,{failures},{runs},{rate!r},{float(greater)!r}")
            print(f"probability,{failures},{runs},{rate!r},{float(stats.binom.pmf(failures, runs, rate))!r}")
    for _ in range(300):
        before = int(10 ** chance.uniform(0, 4))
        failed = int(before * chance.random() ** 4)
        runs = int(10 ** chance.uniform(0, 3))
        failures = min(runs, int(runs * chance.random() ** 3))
        # scipy's own tail is 1 less the rest, which leaves nothing of small ones.
        counts = numpy.arange(failures, runs + 1)
        tail = stats.betabinom.pmf(counts, runs, 0.5 + failed, 0.5 + before - failed).sum()
        print(f"at-least-after {failed}/{before},{failures},{runs},,{float(tail)!r}")
    for _ in range(300):
        values = sorted(round(chance.random(), 3) for _ in range(chance.randint(1, 40)))
        share = chance.choice((0.0, 0.25, 0.5, 0.75, 0.95, 1.0))
        text = " ".join(map(str, values))
        print(f"quantile {text},,,{share},{float(numpy.quantile(values, share))!r}")
    for _ in range(300):
        z = chance.uniform(-5, 5)
        print(f"normal,,,{z!r},{float(stats.norm.cdf(z))!r}")
    for _ in range(100):
        values = [chance.random() ** 3 for _ in range(chance.randint(1, 30))]
        text = " ".join(map(repr, values))
        adjusted = stats.false_discovery_control(values)
        print(f"adjust {text},,,,{float(adjusted.sum())!r}")


def wilson(failures: int, runs: int) -> tuple[float, float]:
    """Wilson's interval at 95 %, without the rounding errors at 0 and 1."""
    interval = stats.binomtest(failures, runs, 0.5).proportion_ci(0.95, "wilson")
    low = 0.0 if failures == 0 else float(interval.low)
    high = 1.0 if failures == runs else float(interval.high)
    return low, high


main()
