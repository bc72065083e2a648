#!/usr/bin/env python3
"""Print data, or questions with the answers that a person would compute.

    answers.py NOW data       the points of every metric, as JSON
    answers.py NOW answers    queries and their answers, as JSON
    answers.py NOW show TEXT  queries that contain a text and their answers, to read

NOW is a unix time in seconds. The data lies in the seven hours before it.
"""

import json
import sys

import senders
from questions import questions
from results import result
from rules import Range


def answered(question, r, now):
    """Return one question as the test asks it, with its answer."""
    lines = [line for x in question.fields for line in x.lines(r)]
    if question.keep:
        lines = question.keep(lines)
    text = "SELECT {} BETWEEN {} AND {}".format(
        ", ".join(x.text for x in question.fields), r.begin * 1000, r.end * 1000)
    if question.clause:
        text += " " + question.clause
    slot = max(read.metric.resolution for line in lines for read in line.reads)
    made = {"query": text, "start": r.begin // slot * slot * 1000}
    if question.width:
        made["width"] = question.width
    made["results"] = [result(line, r, now, question.width) for line in lines]
    return made


def answers(now):
    """Return all questions with their answers."""
    start, buckets = senders.base(now), senders.buckets(now)
    for q in questions():
        yield answered(q, Range(start + q.begin, start + q.end, buckets), now)


def main(arguments):
    if len(arguments) < 2 or arguments[1] not in ("data", "answers", "show"):
        sys.exit(__doc__)
    now = int(arguments[0])
    if arguments[1] == "data":
        json.dump(senders.as_json(now), sys.stdout, allow_nan=False)
    elif arguments[1] == "answers":
        json.dump(list(answers(now)), sys.stdout, allow_nan=False)
    else:
        for a in answers(now):
            if arguments[2] in a["query"]:
                print(a["query"])
                for line in a["results"]:
                    print("  ", json.dumps(line))
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
