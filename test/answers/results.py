"""What the answer to a query says of each series: its outputs, and what was read for it."""

import math
from collections import Counter
from fractions import Fraction

from rules import AGGREGATES, average, patience, windows


def ranked(word, n, name, *numbers):
    """Return the clause TOP or BOTTOM n BY f, and what it does to the series of a result.

    They are ordered by f over all values of the range, series without a number last, and the
    first n stay. Up to n series keep their order.
    """
    def keep(lines):
        if len(lines) <= n:
            return lines

        def place(line):
            seen = [v.number for v in line.in_range()]
            if not seen:
                return (1, 0)
            number = AGGREGATES[name](seen, *numbers)
            return (0, -number if word == "TOP" else number)
        return sorted(lines, key=place)[:n]
    return f"{word} {n} BY {name}({', '.join(str(x) for x in numbers)})", keep


def sample_of(slots, first):
    """Return the last 1440 slots up to the last set one, as far as they lie in the range."""
    return [s for s in slots if s > slots[-1] - 1440 and s >= first]


def distance_of(slots, first):
    """Return the distance of points in slots: the most common one of the sample.

    Of several the shortest. With fewer than two points in the sample it is the mean distance
    over the range, with fewer than two points there it is 1.
    """
    if len(slots) < 2:
        return 1
    sample = sample_of(slots, first)
    if len(sample) < 2:
        mean = Fraction(slots[-1] - slots[0], len(slots) - 1)
        assert mean % 1 != Fraction(1, 2), "a distance that rounding decides"
        return round(mean)
    distances = Counter(b - a for a, b in zip(sample, sample[1:]))
    most = max(distances.values())
    return min(d for d, times in distances.items() if times == most)


def has_ended(read_, slots, r, now):
    """Say whether the last point of a metric is older than its patience, and than a minute.

    The age is that at the end of the range, or now if that is earlier. The patience is by the
    values of the sample. A metric without a point in the range has ended.
    """
    if not slots:
        return True
    m = read_.metric
    values = [s for s in sample_of(slots, read_.first) if not math.isnan(m.points[s])]
    end = (read_.first + read_.count) * m.resolution + read_.shift
    age = min(end, now) - (slots[-1] * m.resolution + read_.shift)
    allowed = patience(values, m.resolution)
    return age > max(60, allowed)


def described(line, r, now):
    """Return what a result says of the metrics read for it, each in its own range.

    points: set slots. last_point: the time of the latest, in the times of the query.
    coverage: of the points that each promised by its distance, those that are there. interval:
    the distance in the metric with the most points, 0 with fewer than two. ended: all metrics have.
    """
    points, last, ended, counts = 0, [], True, []
    by_points = {}
    for read_ in line.reads:
        m = read_.metric
        slots = [s for s in m.slots if 0 <= s - read_.first < read_.count]
        distance = distance_of(slots, read_.first)
        points += len(slots)
        counts.append((read_, len(slots), distance))
        if slots:
            last.append(slots[-1] * m.resolution + read_.shift)
        ended = has_ended(read_, slots, r, now) and ended
        interval = distance * m.resolution * 1000 if len(slots) > 1 else 0
        by_points.setdefault(len(slots), set()).add(interval)
    usual = min(by_points[max(by_points)])
    there, promised = 0, 0
    for read_, count, distance in counts:
        if count < 2:  # nothing is known of its sender: it is like the others
            distance = max(1, usual // (read_.metric.resolution * 1000))
        due = max(1, read_.count // distance)
        promised += due
        there += min(count, due)
    made = {"coverage": min(1.0, there / promised), "points": points, "ended": ended}
    if last:
        made["last_point"] = max(last) * 1000
    intervals = by_points[max(by_points)]
    if len(intervals) == 1:  # else several metrics have the most points
        made["interval"] = intervals.pop()
    return made


def shown(number):
    """Return a number as JSON can say it: infinities are null there, as gaps are."""
    return None if number is None or math.isinf(number) else number


def columns(line, width):
    """Return at most `width` columns of equal length: average, least and greatest of each."""
    length, count, by_window = windows(line, -(-line.count // width) * line.resolution)
    made = {"values": [], "min": [], "max": []}
    for window in range(count):
        numbers = [v.number for v in by_window.get(window, [])]
        for name, function in (("values", average), ("min", min), ("max", max)):
            made[name].append(shown(function(numbers)) if numbers else None)
    return {"resolution": length * line.resolution * 1000, **made}


def result(line, r, now, width=None):
    """Return one series as the answer has it: a null for every gap."""
    if width:
        made = columns(line, width)
    else:
        known = {v.at: v.number for v in line.values}
        made = {"resolution": line.resolution * 1000,
                "values": [shown(known.get(step)) for step in range(line.count)]}
    return {"stars": list(line.stars), **made, **described(line, r, now)}
