"""Ray's own words about its messages, for the tests of Rayfit's subset of them (`proto/`).

    tests/parity/run.sh wire

writes, from the installed Ray's protobuf modules, two files beside this one, or into the folder that is named:

* `ray-messages.json`: all that Ray has in the messages, enums and services of which Rayfit has a
  part;
* `wire.jsonl.gz`: random cluster states, each as Ray's protobuf writes it in bytes (base64) and in
  canonical JSON. They use every field that Ray has, also those that Rayfit does not read.
"""

import base64
import gzip
import json
import pathlib
import random
import re
import sys

import ray  # noqa: F401  (puts its own protobuf on the path)
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from ray.core.generated import autoscaler_pb2, common_pb2, gcs_pb2, gcs_service_pb2, logging_pb2, pubsub_pb2

HERE = pathlib.Path(__file__).parent
FILES = [autoscaler_pb2, common_pb2, gcs_pb2, gcs_service_pb2, logging_pb2, pubsub_pb2]
CASES = 250

TEXTS = ["", "a", "cpu-group", "ray.io/node-group", "_PG_29d8e7", "Größe", "x" * 200]
AMOUNTS = [0.0, 0.5, 1.0, 3.3, 1e-4, 2.0**40, 1e18, -1.0]


def field(described):
    """Number, type and cardinality of a field; the type of a message or enum is its name."""
    names = {value: name[5:].lower() for name, value in vars(FieldDescriptor).items() if name.startswith("TYPE_")}
    kind = names[described.type]
    if described.message_type and described.message_type.GetOptions().map_entry:
        key, value = (described.message_type.fields_by_name[name] for name in ("key", "value"))
        return [described.number, f"map<{field(key)[1]}, {field(value)[1]}>", "single"]
    if described.message_type or described.enum_type:
        kind = (described.message_type or described.enum_type).full_name
    repeated = getattr(described, "is_repeated", None)
    if repeated is None:
        repeated = described.label == FieldDescriptor.LABEL_REPEATED
    return [described.number, kind, "repeated" if repeated else "single"]


def ours():
    """Full names of the messages, enums and services in `proto/`."""
    names = set()
    for path in (HERE.parent.parent / "proto").glob("*.proto"):
        text = path.read_text()
        package = re.search(r"^package (\S+);", text, re.MULTILINE)[1]
        names |= {f"{package}.{name}" for name in re.findall(r"^(?:message|enum|service) (\w+)", text, re.MULTILINE)}
    return names


def messages():
    known, names = {"messages": {}, "enums": {}, "services": {}}, ours()
    for module in FILES:
        described = module.DESCRIPTOR
        for message in described.message_types_by_name.values():
            if message.full_name in names:
                known["messages"][message.full_name] = {one.name: field(one) for one in message.fields}
        for enum in described.enum_types_by_name.values():
            if enum.full_name in names:
                known["enums"][enum.full_name] = {value.name: value.number for value in enum.values}
        for service in described.services_by_name.values():
            if service.full_name in names:
                known["services"][service.full_name] = {
                    method.name: [method.input_type.full_name, method.output_type.full_name]
                    for method in service.methods
                }
    return known


def scalar(rng, one):
    if one.type == FieldDescriptor.TYPE_DOUBLE:
        return rng.choice(AMOUNTS)
    if one.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(TEXTS)
    if one.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.choice([0, 28, 28]))
    if one.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice([value.number for value in one.enum_type.values])
    if one.type == FieldDescriptor.TYPE_BOOL:
        return rng.random() < 0.5
    bits = 31 if one.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32) else 63
    return rng.choice([0, 1, 12, 2**bits - 1, -(2**bits)])


def fill(rng, message, depth=0):
    """Puts random values into a message, whatever fields it has."""
    for one in message.DESCRIPTOR.fields:
        if rng.random() < 0.3:
            continue
        target = getattr(message, one.name)
        if one.message_type and one.message_type.GetOptions().map_entry:
            kind = one.message_type.fields_by_name["value"]
            for _ in range(rng.randrange(4)):
                target[rng.choice(TEXTS)] = scalar(rng, kind)
        elif field(one)[2] == "repeated":
            for _ in range(rng.randrange(4 if depth < 2 else 3)):
                if one.message_type:
                    fill(rng, target.add(), depth + 1)
                else:
                    target.append(scalar(rng, one))
        elif one.message_type:
            target.SetInParent()
            fill(rng, target, depth + 1)
        else:
            setattr(message, one.name, scalar(rng, one))


def case(rng):
    state = autoscaler_pb2.ClusterResourceState()
    fill(rng, state)
    data = base64.b64encode(state.SerializeToString(deterministic=True)).decode()
    return {"bytes": data, "json": json_format.MessageToDict(state)}


def main():
    text = json.dumps(messages(), indent=1, sort_keys=True)
    # Lists on one line.
    text = re.sub(r"\[[^\[\]]+\]", lambda found: " ".join(found[0].split()), text)
    folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE
    (folder / "ray-messages.json").write_text(text + "\n")
    rng = random.Random(1)
    lines = "".join(json.dumps(case(rng), separators=(",", ":"), sort_keys=True) + "\n" for _ in range(CASES))
    (folder / "wire.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
