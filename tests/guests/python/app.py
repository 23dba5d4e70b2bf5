"""A tool in Python: `py_sum` adds up numbers."""

import json

from componentize_py_types import Err
from wit_world.exports import Tool as Exported
from wit_world.exports.tool import Call, Outcome
from wit_world.imports import log, types

SCHEMA = {
    "name": "py_sum",
    "description": "Adds up numbers",
    "parameters": {
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
        "required": ["numbers"],
    },
}


class Tool(Exported):
    def list_tools(self) -> list[str]:
        return [json.dumps(SCHEMA)]

    def may_overlap(self, call: Call) -> bool:
        return False

    def run(self, call: Call) -> Outcome:
        numbers = json.loads(call.arguments)["numbers"]
        if not numbers:
            raise Err(types.Error("INVALID", "there is nothing to add up", None))
        log.write(log.Level.DEBUG, f"adding {len(numbers)} numbers")
        text = json.dumps({"type": "text", "text": f"the sum is {sum(numbers)}"})
        return Outcome([text], json.dumps({"value": sum(numbers)}))
