"""What a query answers, computed plainly.

Words: a *slot* is one place of a bucket's resolution; a *point* is a set slot. A series in a
query is a list of *outputs* at a fixed distance, its resolution. An output is a *value* or a
*gap*. Output i stands for start + i × resolution; outputs before the range have negative numbers.
A stored NaN is a point and not a value: it counts where points are counted, and is a gap
everywhere else. So is a result that is not a number. All times are in seconds.
"""

import math
from bisect import bisect_left
from collections import namedtuple
from fractions import Fraction

# An hour before the range is more than any rule looks back from a computed series.
REACH = 3600

# A value: the number of its output, the number itself, and its confidence.
Value = namedtuple("Value", "at number confidence")

# What was read for a series: a metric, the range in its slots, and how much earlier it lies.
Read = namedtuple("Read", "metric first count shift")

# The range of a query, in unix seconds.
Range = namedtuple("Range", "begin end buckets")

# An expression of the language: its text, and a function from a range to its lines.
Expression = namedtuple("Expression", "text lines")


class Line:
    """One series of a query. Gaps are the outputs that `values` does not have.

    `count` is the number of outputs in the range. Values before the range are kept, for the
    rules that look back.
    """

    def __init__(self, resolution, count, values, reads, stars=()):
        self.resolution, self.count = resolution, count
        self.values = [v for v in values if not math.isnan(v.number)]
        self.reads, self.stars = frozenset(reads), tuple(stars)
        self.steps = [v.at for v in self.values]

    def with_values(self, values):
        """Return a series with other values and all else of this one."""
        return Line(self.resolution, self.count, values, self.reads, self.stars)

    def in_range(self):
        """Return the values of the range, without those before it."""
        return [v for v in self.values if v.at >= 0]

    def outputs_before(self):
        """Return how many outputs before the range computed series have."""
        return max(3, REACH // self.resolution)


# --- Reading ---------------------------------------------------------------------------------


def read(pattern, bucket="ones", shift=0):
    """Read metrics. A set slot is its value, with confidence 1; any other slot is a gap.

    A star stands for one part. Both ends of the range are cut to whole slots. With a shift the
    slots that much earlier are read.
    """
    text = f"{pattern} BUCKET {bucket}" + (f" SHIFT BY {span_text(shift)}" if shift else "")

    def lines(r):
        metrics = r.buckets[bucket]
        resolution = metrics[0].resolution
        first, end = (r.begin - shift) // resolution, (r.end - shift) // resolution
        found = []
        for m in metrics:
            stars = match(pattern.split("."), m.parts)
            if stars is not None:
                values = [Value(s - first, m.points[s], 1.0) for s in m.slots if s < end]
                reads = [Read(m, first, end - first, shift)]
                found.append(Line(resolution, end - first, values, reads, stars))
        return found
    return Expression(text, lines)


def match(pattern, parts):
    """Return the parts that the stars of a pattern stand for, None where it does not match."""
    if len(pattern) != len(parts):
        return None
    if any(p not in ("*", part) for p, part in zip(pattern, parts)):
        return None
    return [part for p, part in zip(pattern, parts) if p == "*"]


def span_text(seconds):
    """Return a span as the language writes it."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def call(name, arguments, per_line):
    """Apply a function of one series to every series of its first argument."""
    texts = [a.text if isinstance(a, Expression) else str(a) for a in arguments]
    inner = arguments[0]
    return Expression(f"{name}({', '.join(texts)})",
                      lambda r: [per_line(line) for line in inner.lines(r)])


# --- Over spans ------------------------------------------------------------------------------


def total(numbers):
    """Return the sum, rounded once."""
    return math.fsum(numbers)


def average(numbers):
    """Return sum ÷ number of values, never outside the least and the greatest."""
    return min(max(total(numbers) / len(numbers), min(numbers)), max(numbers))


def percentile_of(numbers, p):
    """Return of n sorted values the one at ⌊(n−1)·p⌋."""
    return sorted(numbers)[math.floor((len(numbers) - 1) * p)]


def variance_of(numbers):
    """Return the variance of the population, rounded once."""
    exact = [Fraction(n) for n in numbers]
    mean = sum(exact) / len(exact)
    return float(sum((n - mean) ** 2 for n in exact) / len(exact))


AGGREGATES = {
    "sum": total,
    "avg": average,
    "mean": average,
    "min": min,
    "max": max,
    "first": lambda numbers: numbers[0],
    "last": lambda numbers: numbers[-1],
    "median": lambda numbers: percentile_of(numbers, 0.5),
    "percentile": percentile_of,
    "variance": variance_of,
    "stddev": lambda numbers: math.sqrt(variance_of(numbers)),
}


def windows(line, span):
    """Cut a series into spans: from the start of the range on, the last one ends with it.

    Returns the length in outputs, the number of spans in the range, and the values by span;
    spans before the range have negative numbers.
    """
    length = max(1, span // line.resolution)
    count = -(-line.count // length)
    values = {}
    for v in line.values:
        values.setdefault(v.at // length, []).append(v)
    return length, count, values


def outputs_in(line, length, window):
    """Return how many outputs of a span lie in the range: the last span may be short."""
    return min(length, line.count - window * length)


def share(line, length, window, values):
    """Return the confidence of a span: that of its values ÷ its outputs in the range."""
    return math.fsum(v.confidence for v in values) / outputs_in(line, length, window)


def over_spans(name, x, span, *numbers):
    """Aggregate the values of each span. A span without a value is a gap."""
    def per_line(line):
        length, count, by_window = windows(line, span)
        results = []
        for window, values in sorted(by_window.items()):
            number = AGGREGATES[name]([v.number for v in values], *numbers)
            results.append(Value(window, number, share(line, length, window, values)))
        return Line(line.resolution * length, count, results, line.reads, line.stars)
    return call(name, (x, *numbers, span_text(span)), per_line)


def find(which, what, side, x, number, span):
    """Find the first or last value of each span whose number, or confidence, is beyond a bound.

    A span without one is a gap. `count` says how many there are, 0 for none.
    """
    name = f"{which}_{side}" + ("_conf" if what == "confidence" else "")

    def beyond(v):
        seen = v.confidence if what == "confidence" else v.number
        return seen > number if side == "above" else seen < number

    def per_line(line):
        length, count, by_window = windows(line, span)
        results = []
        for window in range(-(line.outputs_before() // length), count):
            values = by_window.get(window, [])
            hits = [v.number for v in values if beyond(v)]
            if which == "count":
                hits = [len(hits)]
            if hits:
                hit = hits[-1] if which == "last" else hits[0]
                results.append(Value(window, hit, share(line, length, window, values)))
        return Line(line.resolution * length, count, results, line.reads, line.stars)
    return call(name, (x, number, span_text(span)), per_line)


def counted(name, x, span):
    """Count the values of each span, or its outputs in the range without a value. No gaps."""
    def per_line(line):
        length, count, by_window = windows(line, span)
        results = []
        for window in range(-(line.outputs_before() // length), count):
            values = by_window.get(window, [])
            number = len(values)
            if name == "empty":
                number = outputs_in(line, length, window) - number
            results.append(Value(window, number, share(line, length, window, values)))
        return Line(line.resolution * length, count, results, line.reads, line.stars)
    return call(name, (x, span_text(span)), per_line)


def histogram(name, x, greatest, digits, span):
    """Return the least or greatest of the whole numbers that a histogram of each span holds.

    Values are rounded; negative ones and those beyond the greatest are left out. A span
    without one is a gap. The numbers have confidence 1. Numbers below 2000 are exact.
    """
    def per_line(line):
        length, count, by_window = windows(line, span)
        results = []
        for window, values in sorted(by_window.items()):
            held = [round(v.number) for v in values if 0 <= v.number <= greatest]
            if held:
                results.append(Value(window, {"min": min, "max": max}[name](held), 1.0))
        return Line(line.resolution * length, count, results, line.reads, line.stars)
    inner = call("histogram", (x, greatest, digits, span_text(span)), per_line)
    return Expression(f"{name}({inner.text})", inner.lines)


# --- Counters and steps ----------------------------------------------------------------------


def longest_step(line):
    """Return how far apart two neighbouring values may be: 5 minutes, or 2.5 outputs."""
    return max(300, 2.5 * line.resolution)


def grown(before, after):
    """Return what a counter grew by. After a fall it began anew: the new value counts."""
    return after - before if after >= before else max(0, after)


def counter_over_spans(name, x, span):
    """Add up what a counter grew by between neighbouring values whose later one is in the span.

    A pair counts if both lie in the span, or if they are not too far apart. rate divides by the
    seconds between the values of these pairs. A span without a pair is a gap.
    """
    def per_line(line):
        length, count, by_window = windows(line, span)
        growth, seconds = {}, {}
        for a, b in zip(line.values, line.values[1:]):
            window = b.at // length
            apart = (b.at - a.at) * line.resolution
            if a.at // length == window or apart <= longest_step(line):
                growth.setdefault(window, []).append(grown(a.number, b.number))
                seconds[window] = seconds.get(window, 0) + apart
        results = []
        for window in sorted(growth):
            number = total(growth[window])
            if name == "rate":
                number /= seconds[window]
            confidence = share(line, length, window, by_window[window])
            results.append(Value(window, number, confidence))
        return Line(line.resolution * length, count, results, line.reads, line.stars)
    return call(name, (x, span_text(span)), per_line)


def step_by_step(name, x):
    """Compare each value with the one before it, which may lie before the range.

    derivate is the difference per second, increase what a counter grew by, rate the same per
    second. A value without one before it, or too far from it, gives a gap. The confidence is
    the mean of both.
    """
    def per_line(line):
        results = []
        for a, b in zip(line.values, line.values[1:]):
            apart = (b.at - a.at) * line.resolution
            if apart > longest_step(line):
                continue
            number = b.number - a.number if name == "derivate" else grown(a.number, b.number)
            if name != "increase":
                number /= apart
            results.append(Value(b.at, number, (a.confidence + b.confidence) / 2))
        return line.with_values(results)
    return call(name, (x,), per_line)


# --- Many series at a step -------------------------------------------------------------------


def patience(steps, resolution):
    """Return for how many seconds a series is believed after its last value.

    `steps` are those of its values, the newest last. The last four count, as long as each is
    at most 2 minutes before the next. Of fewer than three the patience is 5 minutes; else it
    is 2.5 times their largest distance, at most 5 minutes. It is never below 2.5 outputs.
    """
    distances = []
    for i in range(len(steps) - 1, max(0, len(steps) - 4), -1):
        distance = (steps[i] - steps[i - 1]) * resolution
        if distance > 120:
            break
        distances.append(distance)
    if len(distances) < 2:
        return max(300, 2.5 * resolution)
    return max(2.5 * resolution, min(300, 2.5 * max(distances)))


def part_at(line, step):
    """Return what a series takes part with at a step, None if it does not.

    That is its value at the step, else its last one before it, if that is not older than the
    patience of the series. Values before the range count as well.
    """
    i = bisect_left(line.steps, step)
    if i < len(line.steps) and line.steps[i] == step:
        return line.values[i]
    if i == 0:
        return None
    age = (step - line.steps[i - 1]) * line.resolution
    if age > patience(line.steps[max(0, i - 4):i], line.resolution):
        return None
    return line.values[i - 1]


def steps_of(lines):
    """Return the steps at which at least one series has a value of its own."""
    least = -lines[0].outputs_before()
    return sorted({step for line in lines for step in line.steps if step >= least})


def combine(lines, function, all_of_them, stars=()):
    """Make one series of many.

    At each step at which at least one has a value of its own, the function computes from what
    takes part. Where all have to and one does not, or where the function returns None, is a
    gap. The confidence is the mean of those that take part.
    """
    values = []
    for step in steps_of(lines):
        parts = [p for p in (part_at(line, step) for line in lines) if p is not None]
        if all_of_them and len(parts) < len(lines):
            continue
        number = function([p.number for p in parts])
        if number is not None:
            confidence = math.fsum(p.confidence for p in parts) / len(parts)
            values.append(Value(step, number, confidence))
    reads = frozenset().union(*(line.reads for line in lines))
    return Line(lines[0].resolution, lines[0].count, values, reads, stars)


def less(numbers):
    """Return the first number less all others."""
    return numbers[0] - total(numbers[1:])


def quotient_of(numbers):
    """Return the first number divided by all others, None where one of them is 0."""
    result = numbers[0]
    for n in numbers[1:]:
        if n == 0:
            return None
        result /= n
    return result


# The functions of many series, and whether all of them have to take part.
COMBINERS = {
    "sum": (total, False),
    "avg": (average, False),
    "min": (min, False),
    "max": (max, False),
    "diff": (less, True),
    "product": (math.prod, True),
    "quotient": (quotient_of, True),
}


def of_many(name, *xs):
    """Combine all series of all arguments."""
    function, all_of_them = COMBINERS[name]

    def lines(r):
        return [combine([line for x in xs for line in x.lines(r)], function, all_of_them)]
    return Expression(f"{name}({', '.join(x.text for x in xs)})", lines)


def quantile(x, q):
    """Return at each step the quantile of what takes part."""
    def lines(r):
        return [combine(x.lines(r), lambda numbers: percentile_of(numbers, q), False)]
    return Expression(f"quantile({x.text}, {q})", lines)


def extremes(name, x, k):
    """Show of every series its own values at steps where fewer than k others are beyond it.

    All that take part compete; a value that is held from before is not shown. Series that show
    nothing in the range are left out. What a result says of itself is of its own metric.
    """
    sign = 1 if name == "topk" else -1

    def lines(r):
        all_lines = x.lines(r)
        shown = [[] for _ in all_lines]
        for step in steps_of(all_lines):
            parts = [part_at(line, step) for line in all_lines]
            for i, p in enumerate(parts):
                if p is None or p.at != step:
                    continue
                beyond = [o for o in parts if o and sign * o.number > sign * p.number]
                if len(beyond) < k:
                    shown[i].append(p)
        made = [line.with_values(values) for line, values in zip(all_lines, shown)]
        return [line for line in made if line.in_range()]
    return Expression(f"{name}({x.text}, {k})", lines)


OPERATORS = {"+": "sum", "-": "diff", "*": "product", "/": "quotient"}


def joined(left, operator, right, on=None):
    """Compute between the series of two patterns whose stars stand for the same.

    `on` says which stars count, else all do. A series without stars goes with every one of the
    other side. Series without a partner are left out. The result has the stars and the order
    of the left side, or of the right one where the left is a single series without stars.
    Both operands have to take part.
    """
    function = COMBINERS[OPERATORS[operator]][0]

    def same(a, b):
        if on is not None:
            return all(a.stars[i - 1] == b.stars[i - 1] for i in on)
        return not a.stars or not b.stars or a.stars == b.stars

    def lines(r):
        pairs = [(a, b) for a in left.lines(r) for b in right.lines(r) if same(a, b)]
        return [combine([a, b], function, True, a.stars or b.stars) for a, b in pairs]
    text = f"({left.text}) {operator} ({right.text})"
    if on is not None:
        text += " ON " + ", ".join(str(i) for i in on)
    return Expression(text, lines)


# --- Value by value --------------------------------------------------------------------------


def divided(a, b):
    """Return a ÷ b, None where b is 0."""
    return a / b if b != 0 else None


ARITHMETIC = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divided,
}


def mapped(line, function):
    """Change each value; None makes a gap. Gaps stay gaps, confidences stay."""
    changed = ((v, function(v.number)) for v in line.values)
    return line.with_values([v._replace(number=n) for v, n in changed if n is not None])


def with_number(x, operator, number):
    """Compute with a number on the right."""
    function = ARITHMETIC[operator]
    return Expression(f"({x.text}) {operator} {number}", lambda r: [
        mapped(line, lambda v: function(v, number)) for line in x.lines(r)])


def number_with(number, operator, x):
    """Compute with a number on the left. A number divided by 0 is a gap."""
    function = ARITHMETIC[operator]
    return Expression(f"{number} {operator} ({x.text})", lambda r: [
        mapped(line, lambda v: function(number, v)) for line in x.lines(r)])


SCALES = {
    "abs": abs,
    "sqrt_scale": lambda v: math.copysign(math.sqrt(abs(v)), v),
    "log10_scale": lambda v: math.copysign(1, v) * math.log10(abs(v)) if v else 0.0,
}


def scaled(name, x):
    """Return the absolute value; or its root or logarithm, times the sign of the value."""
    return call(name, (x,), lambda line: mapped(line, SCALES[name]))


def bounded(name, x, number):
    """Return values that are at most (min) or at least (max) a number."""
    function = {"min": min, "max": max}[name]
    return call(name, (x, float(number)),
                lambda line: mapped(line, lambda v: function(v, number)))


def mavg(x, span):
    """Return at each value the mean of the values among the last outputs, its own included.

    They may lie before the range. The confidence is the sum of theirs ÷ outputs of the span.
    """
    def per_line(line):
        length = max(1, span // line.resolution)
        results = []
        for i, v in enumerate(line.values):
            first = bisect_left(line.steps, v.at - length + 1)
            last = line.values[first:i + 1]
            confidence = math.fsum(w.confidence for w in last) / length
            results.append(Value(v.at, average([w.number for w in last]), confidence))
        return line.with_values(results)
    return call("mavg", (x, span_text(span)), per_line)


def ewma(x, alpha=None, span=None):
    """Return y + α·(v − y) at each value v, y being the result before it; the first value is y.

    It begins with the range. With a span α is 1 − e^(−distance of the two values ÷ span). The
    confidences are averaged the same way.
    """
    def per_line(line):
        results = []
        for v in line.in_range():
            if not results:
                results.append(v)
                continue
            y = results[-1]
            weight = alpha
            if span:
                weight = 1 - math.exp(-(v.at - y.at) * line.resolution / span)
            results.append(Value(v.at, y.number + weight * (v.number - y.number),
                                 y.confidence + weight * (v.confidence - y.confidence)))
        return line.with_values(results)
    return call("ewma", (x, span_text(span) if span else alpha), per_line)


def fill(x, word):
    """Put values with confidence 0 into gaps of the range.

    null: nothing. zero: 0. previous: the last value of the range before the gap. linear: on the
    line between the values around it. Where there is no such value a gap stays.
    """
    def filled(line, step):
        values = line.in_range()
        i = bisect_left([v.at for v in values], step)
        if i < len(values) and values[i].at == step:
            return values[i]
        if word == "zero":
            return Value(step, 0, 0.0)
        if word == "previous" and i > 0:
            return Value(step, values[i - 1].number, 0.0)
        if word == "linear" and 0 < i < len(values):
            a, b = values[i - 1], values[i]
            share_of_way = (step - a.at) / (b.at - a.at)
            return Value(step, a.number + (b.number - a.number) * share_of_way, 0.0)
        return None

    def per_line(line):
        made = (filled(line, step) for step in range(line.count))
        return line.with_values([v for v in made if v is not None])
    return call("fill", (x, word), per_line)


def confidences(line):
    """Return the confidence of every output of the range; that of a gap is 0."""
    known = {v.at: v.confidence for v in line.values}
    return [known.get(step, 0.0) for step in range(line.count)]


def confidence(x):
    """Return the confidence as value of every output, with confidence 1."""
    return call("confidence", (x,), lambda line: line.with_values(
        [Value(step, c, 1.0) for step, c in enumerate(confidences(line))]))


def replace_below_confidence(x, bound, number):
    """Put a number where the confidence is at most the bound; gaps have confidence 0."""
    def per_line(line):
        known = {v.at: v for v in line.values}
        return line.with_values([
            known[step] if c > bound else Value(step, number, c)
            for step, c in enumerate(confidences(line))])
    return call("replace_below_confidence", (x, bound, number), per_line)
