// A tool in JavaScript: `js_words` counts the words of its text, longest first.
import { write } from "dsh:plugin/log@0.1.0";
import { get } from "dsh:plugin/config@0.1.0";

const SCHEMA = {
  name: "js_words",
  description: "Counts the words of a text",
  parameters: {
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  },
};

export const tool = {
  listTools() {
    return [JSON.stringify(SCHEMA)];
  },
  mayOverlap() {
    return false;
  },
  run(call) {
    const { text } = JSON.parse(call.arguments);
    const words = text.split(/\s+/).filter((word) => word !== "");
    const longest = words.reduce((best, word) => (word.length > best.length ? word : best), "");
    write("debug", `counted with ${get()}`);
    const answer = { type: "text", text: `${words.length} words, the longest is "${longest}"` };
    return { content: [JSON.stringify(answer)], more: JSON.stringify({ value: words.length }) };
  },
};
