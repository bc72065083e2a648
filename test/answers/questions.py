"""The questions: queries of the language, each with the range it is asked for.

Most are a function × a kind of sender; the first ones are the scenes that every user meets.
Ranges are chosen so that no answer depends on the rounding of a comparison.
"""

from collections import namedtuple

from results import ranked
from rules import (
    bounded, confidence, counted, counter_over_spans, ewma, extremes, fill, find, histogram,
    joined, mavg, number_with, of_many, over_spans, quantile, read,
    replace_below_confidence, scaled, step_by_step, with_number)
from senders import HOUR, LENGTH, MINUTE

# A question: expressions, the range in seconds from the start of the data, and what else.
Question = namedtuple("Question", "fields begin end clause keep width", defaults=("", None, None))


def ask(x, begin, end, **more):
    """Return a question of one field or of several."""
    return Question(x if isinstance(x, list) else [x], begin, end, **more)


def scenes():
    """Return the questions in which gaps have misled users, one after the other."""
    hits, lat = read("cc.hits"), read("hosts.*.lat")
    half = read("half.usage")
    percent = with_number(joined(read("used.*"), "/", read("total.*")), "*", 100)
    return [
        # A point every 10 s: an hour has 360 of them.
        ask(over_spans("sum", hits, HOUR), HOUR, 3 * HOUR),
        # One of four hosts died during the range, an hour ago, and hours ago.
        ask(of_many("min", lat), 2 * HOUR - 5 * MINUTE, 2 * HOUR + 5 * MINUTE),
        ask(of_many("min", lat), 3 * HOUR, 3 * HOUR + 5 * MINUTE),
        ask(over_spans("min", of_many("min", lat), MINUTE), HOUR, 3 * HOUR),
        ask(read("hosts.d.lat"), 5 * HOUR, 5 * HOUR + 5 * MINUTE),
        ask(over_spans("avg", read("hosts.d.lat"), 10 * MINUTE), HOUR, 5 * HOUR),
        # Half of the half hour is missing.
        ask(over_spans("avg", half, 30 * MINUTE), 30 * MINUTE, HOUR),
        # A range that is no multiple of the span: the last one is short.
        ask(over_spans("sum", hits, HOUR), HOUR, 2 * HOUR + 30 * MINUTE),
        # The rate of a counter that is sent every 10 s.
        ask(step_by_step("rate", read("counter.bytes")), HOUR, HOUR + 5 * MINUTE),
        ask(counter_over_spans("rate", read("counter.bytes"), MINUTE), HOUR, 2 * HOUR),
        # Five minutes of which 15 s exist.
        ask(read("*.mps"), HOUR - 285, HOUR + 15),
        ask(over_spans("avg", read("*.mps"), 5 * MINUTE), HOUR - 285, HOUR + 15),
        ask(of_many("sum", read("*.mps")), HOUR - 285, HOUR + 15),
        # The percentage of each disk; one has no total, one has no use, one died.
        ask(percent, 2 * HOUR - 10 * MINUTE, 2 * HOUR + 10 * MINUTE),
        ask(over_spans("max", percent, 5 * MINUTE), HOUR, 3 * HOUR),
    ]


# A sender: its metric, bucket, a range with a short last span, a span, and three numbers that
# are none of its values: a low, a middle and a high one.
Sender = namedtuple("Sender", "metric bucket begin end span low middle high")

SENDERS = [
    Sender("cc.hits", "ones", HOUR, 2 * HOUR + 7 * MINUTE, 5 * MINUTE, 6.5, 8.5, 10.5),
    Sender("sec.temp", "ones", 10 * MINUTE, 24 * MINUTE + 30, 4 * MINUTE, 22.3, 26.3, 30.7),
    Sender("min.load", "ones", HOUR, 3 * HOUR - 130, 10 * MINUTE, 1.9, 3.1, 4.7),
    Sender("odd.queue", "ones", HOUR, HOUR + 50 * MINUTE + 3, 3 * MINUTE, 10.5, 30.5, 50.5),
    Sender("died.req", "ones", 2 * HOUR, 4 * HOUR, 7 * MINUTE, 34.5, 40.5, 46.5),
    Sender("broken.job", "ones", 100 * MINUTE, 170 * MINUTE, 15 * MINUTE, 35.5, 50.5, 75.5),
    Sender("counter.bytes", "ones", HOUR, 150 * MINUTE, 8 * MINUTE, 900.5, 15000.5, 20000.5),
    Sender("nan.speed", "ones", 10 * MINUTE, HOUR, 2 * MINUTE, 4.3, 5.7, 7.3),
    Sender("dec.tenth", "ones", 0, 10 * MINUTE, MINUTE, 0.05, 0.15, 0.25),
    Sender("dec.price", "ones", 50 * MINUTE, 65 * MINUTE, 2 * MINUTE, 0.15, 0.25, 5.5),
    Sender("signed.delta", "ones", HOUR, HOUR + 10 * MINUTE, 45, -2.5, 0.5, 2.5),
    Sender("half.usage", "ones", 30 * MINUTE, HOUR, 10 * MINUTE, 66.5, 70.5, 74.5),
    Sender("lone.point", "ones", HOUR, 2 * HOUR, 20 * MINUTE, 1.5, 41.5, 50.5),
    Sender("hosts.*.lat", "ones", 90 * MINUTE, 150 * MINUTE, 11 * MINUTE, 99.5, 110.5, 140.5),
    Sender("mix.*.v", "ones", HOUR, 2 * HOUR, 9 * MINUTE, 450.5, 500.5, 520.5),
    Sender("t.full", "tens", HOUR, 2 * HOUR + 40, 10 * MINUTE, 16.5, 25.5, 33.5),
    Sender("t.minute", "tens", HOUR, 3 * HOUR, 25 * MINUTE, 11.3, 13.3, 16.3),
    Sender("t.price", "tens", 0, 15 * MINUTE, 2 * MINUTE, 0.15, 0.25, 5.5),
    Sender("t.odd", "tens", HOUR, 2 * HOUR, 7 * MINUTE, 7.3, 9.3, 13.3),
]


def of_sender(s):
    """Return the read of a sender."""
    return read(s.metric, s.bucket)


def spans_of_senders():
    """Return every function over spans × every sender."""
    for s in SENDERS:
        x = of_sender(s)
        made = [over_spans(name, x, s.span) for name in (
            "sum", "avg", "min", "max", "first", "last", "median", "variance", "stddev")]
        made += [over_spans("percentile", x, s.span, p) for p in (0.25, 0.9)]
        made += [find(which, "value", side, x, number, s.span)
                 for which, side, number in (
                     ("first", "above", s.middle), ("last", "above", s.high),
                     ("first", "below", s.low), ("last", "below", s.middle),
                     ("count", "above", s.middle), ("count", "below", s.low))]
        made += [counted(name, x, s.span) for name in ("count", "empty")]
        made += [counter_over_spans(name, x, s.span) for name in ("increase", "rate")]
        for number in made:
            yield ask(number, s.begin, s.end)
        yield ask([over_spans("mean", x, 2 * s.span), over_spans("avg", x, s.end - s.begin)],
                  s.begin, s.end)


# Short ranges for questions with one answer a slot: metric, bucket, start, end.
SHORT = [
    ("cc.hits", "ones", HOUR + 4, HOUR + 3 * MINUTE),
    ("sec.temp", "ones", 3 * HOUR - MINUTE, 3 * HOUR + MINUTE),
    ("min.load", "ones", HOUR + 20, HOUR + 8 * MINUTE),
    ("odd.queue", "ones", 2 * HOUR, 2 * HOUR + 6 * MINUTE),
    ("broken.job", "ones", 2 * HOUR + 28 * MINUTE, 2 * HOUR + 33 * MINUTE),
    ("counter.bytes", "ones", 66 * MINUTE, 70 * MINUTE),
    ("nan.speed", "ones", 20 * MINUTE, 25 * MINUTE),
    ("dec.price", "ones", 20 * MINUTE, 21 * MINUTE),
    ("signed.delta", "ones", HOUR, HOUR + 2 * MINUTE),
    ("lone.pair", "ones", 89 * MINUTE, 95 * MINUTE),
    ("t.five", "tens", HOUR + 2 * MINUTE, HOUR + 40 * MINUTE),
    ("t.seven", "tens", HOUR, 2 * HOUR),
    ("t.odd", "tens", HOUR, HOUR + 20 * MINUTE),
    ("t.counter", "tens", 32 * MINUTE, 36 * MINUTE),
]


def values_of_senders():
    """Return every function that has one answer a slot × every sender."""
    for metric, bucket, begin, end in SHORT:
        x = read(metric, bucket)
        yield ask(x, begin, end)
        yield ask([step_by_step(name, x) for name in ("derivate", "increase", "rate")], begin, end)
        yield ask([mavg(x, span) for span in (30, 2 * MINUTE)], begin, end)
        yield ask(ewma(x, alpha=0.25), begin, end)
        yield ask(ewma(x, span=40), begin, end)
        for word in ("null", "zero", "previous", "linear"):
            yield ask(fill(x, word), begin, end)
        yield ask([with_number(x, "*", 60), with_number(x, "+", 0.5), with_number(x, "-", 3)],
                  begin, end)
        yield ask([with_number(x, "/", 4), number_with(12, "/", x), number_with(100, "-", x)],
                  begin, end)
        yield ask([scaled(name, x) for name in ("abs", "sqrt_scale", "log10_scale")], begin, end)
        yield ask([bounded("min", x, 7.5), bounded("max", x, 7.5)], begin, end)
        yield ask([confidence(x), replace_below_confidence(x, 0.5, -1)], begin, end)


def confidences():
    """Return questions for the confidence of what functions make."""
    for metric, bucket, begin, end in SHORT:
        x = read(metric, bucket)
        for made in (over_spans("avg", x, MINUTE), over_spans("max", x, 50),
                     counted("count", x, 40), step_by_step("rate", x), mavg(x, 30),
                     over_spans("sum", fill(x, "zero"), MINUTE)):
            yield ask(confidence(made), begin, end)
        minutes = over_spans("avg", x, MINUTE)
        yield ask(replace_below_confidence(minutes, 0.031, -5), begin, end)
        filled = fill(x, "previous")
        yield ask([find("count", "confidence", "below", filled, 0.5, MINUTE),
                   find("first", "confidence", "above", filled, 0.5, MINUTE),
                   find("last", "confidence", "below", filled, 0.5, MINUTE)], begin, end)
        yield ask([find("last", "confidence", "above", x, 0.5, MINUTE),
                   find("count", "confidence", "above", x, 0.5, 2 * MINUTE)], begin, end)
    lat = read("hosts.*.lat")
    begin, end = 2 * HOUR - 2 * MINUTE, 2 * HOUR + 2 * MINUTE
    for made in (of_many("avg", lat), of_many("max", lat),
                 ewma(over_spans("avg", lat, 10), 0.5),
                 joined(read("used.*"), "/", read("total.*")),
                 of_many("sum", over_spans("avg", lat, MINUTE))):
        yield ask(confidence(made), begin, end)


# Groups of series: pattern, bucket, start, end.
GROUPS = [
    ("hosts.*.lat", "ones", 2 * HOUR - 3 * MINUTE, 2 * HOUR + 4 * MINUTE),
    ("mix.*.v", "ones", 3 * HOUR - 4 * MINUTE, 3 * HOUR + 5 * MINUTE),
    ("used.*", "ones", 2 * HOUR - 4 * MINUTE, 2 * HOUR + 4 * MINUTE),
    ("lat.*", "tens", HOUR - 5 * MINUTE, HOUR + 5 * MINUTE),
    ("*.mps", "ones", HOUR - 100, HOUR + 6 * MINUTE),
]


def many():
    """Return every function of many series × groups of senders, also over spans."""
    for pattern, bucket, begin, end in GROUPS:
        x = read(pattern, bucket)
        for name in ("sum", "avg", "min", "max"):
            yield ask(of_many(name, x), begin, end)
            yield ask(over_spans(name, of_many(name, x), MINUTE), begin, end)
            yield ask(of_many(name, over_spans("avg", x, MINUTE)), begin, end)
        for q in (0.5, 0.9):
            yield ask(quantile(x, q), begin, end)
        for name in ("topk", "bottomk"):
            yield ask(extremes(name, x, 1), begin, end)
            yield ask(extremes(name, over_spans("max", x, 30), 2), begin, end)
        yield ask(joined(of_many("max", x), "-", x), begin, end)
        yield ask(with_number(of_many("sum", step_by_step("rate", x)), "*", 60), begin, end)
        yield ask(mavg(of_many("avg", x), MINUTE), begin, end)
        yield ask(fill(of_many("sum", x), "linear"), begin, end)
        yield ask(counter_over_spans("increase", of_many("sum", x), 2 * MINUTE), begin, end)
        for word, name, numbers in (("TOP", "avg", ()), ("BOTTOM", "max", ()),
                                    ("TOP", "percentile", (0.9,)), ("BOTTOM", "sum", ())):
            clause, keep = ranked(word, 2, name, *numbers)
            yield ask(x, begin, end, clause=clause, keep=keep)
    for name in ("diff", "product", "quotient"):
        a, b = read("hosts.a.lat"), read("hosts.d.lat")
        yield ask(of_many(name, a, b), 2 * HOUR - MINUTE, 2 * HOUR + 2 * MINUTE)
        yield ask(of_many(name, a, read("hosts.b.lat"), read("signed.delta")), HOUR, HOUR + 100)


def pairs():
    """Return arithmetic between series and between patterns."""
    used, total, cap = read("used.*"), read("total.*"), read("cap.*.*")
    hits, temp = read("cc.hits"), read("sec.temp")
    used_minutes, total_minutes = (over_spans("max", x, MINUTE) for x in (used, total))
    hits_minutes, temp_minutes = over_spans("sum", hits, MINUTE), over_spans("avg", temp, MINUTE)
    begin, end = 2 * HOUR - 6 * MINUTE, 2 * HOUR + 8 * MINUTE
    for operator in "+-*/":
        yield ask(joined(used, operator, total), begin, end)
        yield ask(joined(used, operator, cap, on=(1,)), begin, end)
        yield ask(joined(used_minutes, operator, total_minutes), begin, end)
        yield ask(joined(hits, operator, temp), 3 * HOUR - MINUTE, 3 * HOUR + MINUTE)
        yield ask(joined(temp, operator, read("nan.speed")), 20 * MINUTE, 25 * MINUTE)
        yield ask(joined(hits, operator, read("signed.delta")), HOUR, HOUR + 3 * MINUTE)
        yield ask(joined(hits, operator, read("min.load")), HOUR, HOUR + 5 * MINUTE)
        yield ask(joined(hits, operator, read("odd.queue")), HOUR, HOUR + 5 * MINUTE)
        yield ask(joined(hits_minutes, operator, temp_minutes), 170 * MINUTE, 190 * MINUTE)
        yield ask(joined(read("broken.job"), operator, hits), 118 * MINUTE, 126 * MINUTE)
        yield ask(joined(read("t.five", "tens"), operator, read("t.full", "tens")),
                  HOUR, HOUR + 30 * MINUTE)
        yield ask(joined(read("t.seven", "tens"), operator, read("t.full", "tens")),
                  HOUR, HOUR + 30 * MINUTE)
        yield ask(joined(over_spans("sum", read("t.full", "tens"), 3 * MINUTE), operator,
                         over_spans("sum", read("lat.y", "tens"), 3 * MINUTE)),
                  HOUR - 15 * MINUTE, HOUR + 15 * MINUTE)


def shifted():
    """Return comparisons with earlier times."""
    for metric, bucket, shift, begin, end in (
            ("cc.hits", "ones", HOUR, 2 * HOUR, 2 * HOUR + 3 * MINUTE),
            ("died.req", "ones", 30 * MINUTE, 3 * HOUR - 2 * MINUTE, 3 * HOUR + 3 * MINUTE),
            ("died.req", "ones", 30 * MINUTE, 200 * MINUTE, 220 * MINUTE),
            ("broken.job", "ones", 20 * MINUTE, 2 * HOUR + 15 * MINUTE, 2 * HOUR + 24 * MINUTE),
            ("odd.queue", "ones", 7, HOUR, HOUR + 4 * MINUTE),
            ("lat.y", "tens", 10 * MINUTE, HOUR - 5 * MINUTE, HOUR + 5 * MINUTE)):
        x, before = read(metric, bucket), read(metric, bucket, shift=shift)
        yield ask([x, before], begin, end)
        yield ask(joined(x, "-", before), begin, end)
        yield ask([over_spans("sum", before, MINUTE), counted("count", before, MINUTE)], begin, end)
        yield ask(step_by_step("rate", before), begin, end)


def nested():
    """Return functions of functions."""
    hits, fast = read("cc.hits"), read("counter.fast")
    lat = read("hosts.*.lat")
    for x, begin, end in ((hits, HOUR, HOUR + 31 * MINUTE), (fast, 5 * MINUTE, 35 * MINUTE + 20),
                          (read("broken.job"), 110 * MINUTE, 3 * HOUR),
                          (read("nan.speed"), 15 * MINUTE, 30 * MINUTE)):
        minutes = over_spans("sum", x, MINUTE)
        yield ask(over_spans("avg", minutes, 5 * MINUTE), begin, end)
        yield ask(over_spans("max", step_by_step("rate", x), MINUTE), begin, end)
        yield ask(step_by_step("derivate", minutes), begin, end)
        yield ask(mavg(minutes, 3 * MINUTE), begin, end)
        yield ask(ewma(minutes, span=5 * MINUTE), begin, end)
        yield ask(fill(minutes, "linear"), begin, end)
        yield ask(over_spans("avg", fill(x, "zero"), MINUTE), begin, end)
        yield ask(over_spans("avg", fill(x, "previous"), MINUTE), begin, end)
        yield ask(counted("count", fill(x, "linear"), 70), begin, end)
        yield ask(counted("empty", minutes, 5 * MINUTE), begin, end)
        yield ask(step_by_step("increase", counted("count", x, MINUTE)), begin, end)
        yield ask(counter_over_spans("rate", over_spans("last", x, 30), 5 * MINUTE), begin, end)
    yield ask(of_many("sum", counter_over_spans("rate", lat, MINUTE)), 110 * MINUTE, 130 * MINUTE)
    yield ask(of_many("sum", counted("count", lat, MINUTE)), 110 * MINUTE, 130 * MINUTE)
    yield ask(extremes("topk", mavg(lat, MINUTE), 2), 118 * MINUTE, 122 * MINUTE)
    yield ask(over_spans("max", quantile(lat, 0.5), 5 * MINUTE), 100 * MINUTE, 140 * MINUTE)


def histograms():
    """Return the least and the greatest of histograms."""
    for metric, bucket, begin, end in (
            ("cc.hits", "ones", HOUR, HOUR + 17 * MINUTE),
            ("signed.delta", "ones", HOUR, HOUR + 9 * MINUTE),
            ("broken.job", "ones", 110 * MINUTE, 160 * MINUTE),
            ("hosts.*.lat", "ones", 110 * MINUTE, 127 * MINUTE),
            ("t.full", "tens", HOUR, HOUR + 17 * MINUTE)):
        for name in ("min", "max"):
            yield ask(histogram(name, read(metric, bucket), 1000, 3, 5 * MINUTE), begin, end)


def edges():
    """Return questions at the edges: of ranges, spans, infinities and results themselves."""
    hits, ten = read("cc.hits"), read("t.full", "tens")
    inf = read("inf.ratio")
    yield ask(ten, HOUR + 7, HOUR + 93)  # both ends are cut to slots of 10 s
    yield ask(over_spans("sum", ten, 1), HOUR, HOUR + MINUTE)  # a span below a slot
    yield ask(over_spans("avg", ten, 25), HOUR, HOUR + 2 * MINUTE)  # and one of two and a half
    yield ask(over_spans("sum", hits, HOUR), HOUR, HOUR + 5 * MINUTE)  # a span beyond the range
    yield ask([over_spans(name, hits, 1) for name in ("sum", "avg", "max")], HOUR, HOUR + 25)
    yield ask([over_spans(name, inf, MINUTE) for name in ("sum", "max", "min")], HOUR, HOUR + 200)
    yield ask([counted("count", inf, MINUTE), find("count", "value", "above", inf, 9, MINUTE)],
              HOUR, HOUR + 200)
    yield ask(read("lone.*"), 80 * MINUTE, 100 * MINUTE)
    yield ask(read("*.*.lat"), 2 * HOUR, 2 * HOUR + MINUTE)
    yield ask(hits, -HOUR, -HOUR + MINUTE)  # before there was any
    yield ask(over_spans("sum", hits, HOUR), -HOUR // 2, HOUR)
    for begin, end in ((0, LENGTH), (HOUR, 2 * HOUR), (3 * HOUR, 5 * HOUR), (HOUR, HOUR + 90)):
        for pattern in ("*.*", "hosts.*.lat", "mix.*.v"):
            yield ask(counted("count", read(pattern), 2 * HOUR), begin, end)
        yield ask(counted("count", read("*.*", "tens"), 2 * HOUR), begin, end)
        yield ask(over_spans("avg", of_many("avg", read("hosts.*.lat")), HOUR), begin, end)
    for width in (7, 60):
        for x in (hits, read("hosts.*.lat"), read("broken.job"), read("nan.speed"),
                  of_many("avg", read("hosts.*.lat")), over_spans("max", hits, 30)):
            yield ask(x, 2 * HOUR - 4 * MINUTE, 2 * HOUR + 6 * MINUTE, width=width)
        yield ask(ten, HOUR, 2 * HOUR, width=width)


def live():
    """Return questions whose range ends after now: the age of a point is that of now."""
    for metric in ("live.now", "live.old"):
        yield ask(counted("count", read(metric), HOUR), LENGTH - HOUR, LENGTH + 4 * HOUR)


def questions():
    """Return all questions, those of now first: their answer does not last."""
    made = list(live())
    made += scenes()
    for more in (spans_of_senders, values_of_senders, confidences, many, pairs, shifted, nested,
                 histograms, edges):
        made += more()
    return made
