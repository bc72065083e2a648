"""The data: metrics of senders of every kind, and how a bucket stores them.

Times are in seconds from the start of the data. Every value is a plain formula of its
number, so two runs make the same data.
"""

import math
import struct

MINUTE = 60
HOUR = 3600
LENGTH = 6 * HOUR  # of the data


def base(now):
    """Return the unix time of the start of the data: a whole hour, over an hour ago."""
    return now // HOUR * HOUR - LENGTH - HOUR


class Metric:
    """A metric of a bucket: its points by slot. A slot is one place of the resolution."""

    def __init__(self, name, resolution, start, points):
        self.name = name
        self.parts = name.split(".")
        self.resolution = resolution
        self.points = {}
        for second, value in points:
            self.points[(start + second) // resolution] = stored(value)
        self.slots = sorted(self.points)


def stored(value):
    """Return a value as a slot holds it: of a float the lowest bit of the fraction is dropped."""
    if isinstance(value, int) or math.isnan(value):
        return value
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    return struct.unpack(">d", struct.pack(">Q", bits & ~1))[0]


def every(step, value, begin=0, end=LENGTH, offset=0):
    """Return a point each `step` seconds from `begin` to `end`; `value` is of its number."""
    return [(second, value(k))
            for k, second in enumerate(range(begin + offset, end, step))]


def irregular(distances, value, begin=0, end=LENGTH):
    """Return points at distances that repeat."""
    points, second, k = [], begin, 0
    while second < end:
        points.append((second, value(k)))
        second += distances[k % len(distances)]
        k += 1
    return points


def counter(steps, resets):
    """Return the values of a counter that grows by `steps` in turn and restarts at `resets`."""
    total = 1000

    def value(k):
        nonlocal total
        grown = steps[k % len(steps)]
        total = grown if k in resets else total + grown
        return total
    return value


def around(middle, spread):
    """Return whole values around a middle, which change from point to point."""
    return lambda k: middle + (k * k + 5 * k + k // 7) % (2 * spread + 1) - spread


def eighths(least, count):
    """Return values with a fraction that a float holds exactly."""
    return lambda k: least + (k * 37 + k // 11 * 13) % count / 8


def with_nan(value):
    """Return NaN for every fifth value, and for twelve values in a row."""
    return lambda k: math.nan if k % 5 == 2 or 130 <= k < 142 else value(k)


def prices(k):
    """Return decimals that no float holds exactly, 0.3 most of the time."""
    return {3: 0.1, 5: 0.2, 6: 19.99, 8: 0.7}.get(k % 11, 0.3)


def second_senders():
    """Return the metrics of the bucket of 1 s slots."""
    jitter = [3, 8, 5, 13, 2, 9, 21, 4, 30, 6, 1, 47]
    broken = (every(10, around(50, 20), end=2 * HOUR, offset=4)
              + every(10, around(60, 20), begin=2 * HOUR + 30 * MINUTE, offset=4))
    fast_counter = counter([1, 0, 4, 2], {500, 501, 2000})
    return {
        "cc.hits": every(10, around(8, 3)),
        "sec.temp": every(1, eighths(20, 101), end=3 * HOUR),
        "min.load": every(60, eighths(1, 33), offset=7),
        "odd.queue": irregular(jitter, around(30, 25)),
        "died.req": every(10, around(40, 9), end=3 * HOUR, offset=3),
        "broken.job": broken,
        "counter.bytes": every(10, counter([70, 30, 110, 0, 50], {400, 911, 1100}), offset=6),
        "counter.fast": every(1, fast_counter, end=HOUR),
        "nan.speed": every(10, with_nan(eighths(3, 41)), offset=1),
        "dec.tenth": every(1, lambda k: 0.1, end=HOUR),
        "dec.price": every(1, prices, end=HOUR),
        "signed.delta": every(5, around(0, 4), offset=2),
        "half.usage": every(10, around(70, 5), end=45 * MINUTE),
        "lone.point": [(90 * MINUTE + 1, 42)],
        "lone.pair": [(90 * MINUTE + 1, 4), (93 * MINUTE + 6, 10)],
        "inf.ratio": every(10, lambda k: math.inf if k % 6 == 4 else k % 6 + 0.5),
        "hosts.a.lat": every(10, around(106, 7)),
        "hosts.b.lat": every(10, around(122, 5), offset=3),
        "hosts.c.lat": every(10, around(142, 6), offset=5),
        "hosts.d.lat": every(10, around(90, 6), end=2 * HOUR, offset=8),
        "mix.fast.v": every(1, around(500, 30), end=3 * HOUR),
        "mix.late.v": every(10, around(480, 60), begin=80 * MINUTE, offset=2),
        "mix.rare.v": every(240, around(470, 50), offset=100),
        "mix.slow.v": every(60, around(490, 40), offset=31),
        "used.sda": every(60, around(400, 90), offset=1),
        "used.sdb": every(60, around(300, 50), end=2 * HOUR, offset=1),
        "used.sdc": every(60, around(200, 20), offset=1),
        "total.sda": every(60, lambda k: 800, offset=31),
        "total.sdb": every(60, lambda k: 640, offset=31),
        "total.sdd": every(60, lambda k: 500, offset=31),
        "cap.sda.eu": every(60, lambda k: 1000, offset=11),
        "cap.sdb.us": every(60, lambda k: 900, offset=11),
        "n1.mps": every(1, around(900, 99), begin=HOUR, end=HOUR + 15),
        "n2.mps": every(1, around(700, 99), begin=HOUR, end=HOUR + 15),
        "busy.n1.mps": every(10, around(50, 9)),
    }


def ten_senders():
    """Return the metrics of the bucket of 10 s slots."""
    return {
        "t.full": every(10, around(25, 12)),
        "t.minute": every(60, eighths(10, 57), offset=20),
        "t.five": every(300, around(9, 4)),
        "t.seven": every(420, around(9, 4)),
        "t.counter": every(10, counter([3, 9, 0, 6], {200, 444, 700})),
        "t.price": every(10, prices),
        "t.odd": irregular([10, 40, 20, 10, 90, 30, 160], eighths(5, 77)),
        "lat.x": every(10, around(31, 6)),
        "lat.y": every(10, around(22, 6), end=HOUR),
        "lat.z": every(30, around(44, 9), offset=10),
    }


def live_senders(now):
    """Return metrics whose last points are just now and an hour ago."""
    second = now - base(now)
    return {
        "live.now": [(second - 61, 1), (second - 1, 2)],
        "live.old": [(second - HOUR - 60, 1), (second - HOUR, 2)],
    }


def buckets(now):
    """Return the metrics of each bucket, in the order of their keys.

    A key has the length of each part in front of it, so a shorter part comes first.
    """
    made = {}
    for name, resolution, senders in (
            ("ones", 1, {**second_senders(), **live_senders(now)}),
            ("tens", 10, ten_senders())):
        metrics = [Metric(m, resolution, base(now), p) for m, p in senders.items()]
        made[name] = sorted(metrics, key=lambda m: [(len(p), p) for p in m.parts])
    return made


def as_json(now):
    """Return the data as the test sends it: by bucket, metric and slot."""
    listed = []
    for bucket, metrics in buckets(now).items():
        for m in metrics:
            listed.append({"bucket": bucket, "resolution": m.resolution, "metric": m.parts,
                           "points": [[s, written(m.points[s])] for s in m.slots]})
    return listed


def written(value):
    """Return a value as text: a float has a point or an exponent, NaN and Inf their names."""
    return repr(value)
