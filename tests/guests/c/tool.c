/* A tool in C without a C library: `c_count` tells how many bytes and lines
 * its text has. It shows that the contract's records, lists and results can be
 * made and read from plain C. */
#include "tool_plugin.h"
#include "stdlib.h"
#include "string.h"

static const char SCHEMA[] =
    "{\"name\":\"c_count\",\"description\":\"Counts the bytes and line ends of a JSON text\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
    "\"required\":[\"text\"]},\"concurrent\":true}";

static tool_plugin_string_t copy(const char *text, size_t length) {
    tool_plugin_string_t string = {malloc(length), length};
    memcpy(string.ptr, text, length);
    return string;
}

static size_t decimal(char *out, size_t value) {
    char reversed[20];
    size_t digits = 0, at = 0;
    do {
        reversed[digits++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (digits > 0)
        out[at++] = reversed[--digits];
    return at;
}

static size_t append(char *out, size_t at, const char *text) {
    size_t length = strlen(text);
    memcpy(out + at, text, length);
    return at + length;
}

bool exports_dsh_plugin_tool_list_tools(exports_dsh_plugin_tool_list_json_t *tools,
                                        exports_dsh_plugin_tool_error_t *error) {
    (void)error;
    tools->len = 1;
    tools->ptr = malloc(sizeof *tools->ptr);
    tools->ptr[0] = copy(SCHEMA, sizeof SCHEMA - 1);
    return true;
}

bool exports_dsh_plugin_tool_may_overlap(exports_dsh_plugin_tool_call_t *call) {
    exports_dsh_plugin_tool_call_free(call);
    return true;
}

bool exports_dsh_plugin_tool_run(exports_dsh_plugin_tool_call_t *call,
                                 exports_dsh_plugin_tool_outcome_t *outcome,
                                 exports_dsh_plugin_tool_error_t *error) {
    if (call->arguments.len == 0) {
        error->code = copy("INVALID", 7);
        error->message = copy("the arguments are empty", 23);
        error->details.is_some = false;
        exports_dsh_plugin_tool_call_free(call);
        return false;
    }
    size_t lines = 0;
    for (size_t i = 0; i + 1 < call->arguments.len; i++)
        if (call->arguments.ptr[i] == '\\' && call->arguments.ptr[i + 1] == 'n')
            lines++;
    char text[160];
    size_t at = append(text, 0, "{\"type\":\"text\",\"text\":\"");
    at += decimal(text + at, call->arguments.len);
    at = append(text, at, " bytes, ");
    at += decimal(text + at, lines);
    at = append(text, at, " line ends\"}");

    tool_plugin_string_t note = {(uint8_t *)"counted", 7};
    dsh_plugin_log_write(DSH_PLUGIN_LOG_LEVEL_DEBUG, &note);

    outcome->content.len = 1;
    outcome->content.ptr = malloc(sizeof *outcome->content.ptr);
    outcome->content.ptr[0] = copy(text, at);
    outcome->more.is_some = false;
    exports_dsh_plugin_tool_call_free(call);
    return true;
}
