#!/usr/bin/env python3
"""log_reader.py FILE...: prints each session log's header, its events and its surface, a JSON text a line.
Everything it knows is in log-format.md. It expects sound logs, torn ones too; damage ends in an error."""
import json, re, subprocess, sys  # and the command zstd
from decimal import Decimal

def decompress(data):
    """The plaintext of all frames; of a torn last one what is whole, which the command writes before it fails."""
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout

def constant(name): raise ValueError(name + " is not JSON")
def parse(line): return json.loads(line, parse_int=float, parse_constant=constant)

def number(n):  # As ECMAScript prints it.
    if n != n or n in (float("inf"), float("-inf")): return "null"
    if n == 0: return "0"
    if 1e-6 <= abs(n) < 1e21: return re.sub(r"\.0$", "", format(Decimal(repr(n)), "f"))
    return re.sub(r"e([+-])0*", r"e\1", repr(n))

def dump(v):
    if isinstance(v, float): return number(v)
    if isinstance(v, list): return "[" + ",".join(map(dump, v)) + "]"
    if not isinstance(v, dict): return json.dumps(v, ensure_ascii=False)
    index = [k for k in v if re.fullmatch("0|[1-9][0-9]{0,9}", k) and int(k) < 2**32 - 1]
    keys = sorted(index, key=int) + [k for k in v if k not in index]
    return "{" + ",".join(f"{dump(k)}:{dump(v[k])}" for k in keys) + "}"

ROWS = {"text-chunks": ("text-delta", "texts", "text"), "reasoning-chunks": ("reasoning-delta", "texts", "text"),
        "tool-call-chunks": ("tool-call-delta", "args", "argumentsDelta")}
def expand(row):
    if row.get("type") not in ROWS: return [row]
    (kind, many, one), data, time, events = ROWS[row["type"]], row["data"], row["time0"], []
    if len(data["dt"]) != len(data[many]) - 1: raise ValueError("malformed row")
    for i, part in enumerate(data[many]):
        time += data["dt"][i - 1] if i else 0
        chunk = {"type": kind, **{k: data[k] for k in ("index", "id", "name") if k in data}, one: part}
        events.append({"type": "assistant/chunk", "seq": row["seq0"] + i, "time": time,
                       "data": {"turn": data["turn"], "step": data["step"], "chunk": chunk}})
    return events

def read(path):
    data = open(path, "rb").read()
    lines = (decompress(data) if path.endswith(".zstd") else data).split(b"\n")[:-1]
    header, events, nodes, torn = parse(lines[0].decode("utf-8", "replace")), [], [], False
    for line in lines[1:]:
        try: new = expand(parse(line.decode("utf-8", "replace")))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError): new = []
        torn = torn or [e.get("seq") for e in new] != list(range(len(events), len(events) + len(new))) or not new
        if torn and any(e.get("type") == "turn/end" for e in new): sys.exit(path + ": work is missing before a finished turn")
        events += [] if torn else new
    for e in events:
        op = e.get("surfaceOp")
        if op == "append": nodes.append(e["seq"])
        elif op: nodes[nodes.index(op["start"]):nodes.index(op["end"]) + 1] = [e["seq"]]
    return [header, *events, {"surface": nodes}]

sys.setrecursionlimit(100_000)
for path in sys.argv[1:]:
    for value in read(path):
        sys.stdout.buffer.write((dump(value) + "\n").encode("utf-8", "backslashreplace"))
