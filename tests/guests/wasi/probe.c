/* An ordinary C program with a C library, as a tool: `probe` does to its machine
 * what its arguments say, and tells what came of it. It is a core module for
 * WASI's first preview until the host makes a component of it. */
#include "tool_plugin.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char SCHEMA[] =
    "{\"name\":\"probe\",\"description\":\"Tries its machine\",\"parameters\":{\"type\":\"object\"}}";

static char answer[512];

static tool_plugin_string_t copy(const char *text) {
    tool_plugin_string_t string;
    tool_plugin_string_dup(&string, text);
    return string;
}

static void say(const char *what) { snprintf(answer, sizeof answer, "%s", what); }

static void failed(void) { say(strerror(errno)); }

static void tell_time(void) {
    struct timespec wall, monotonic;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    snprintf(answer, sizeof answer, "%lld.%03ld %lld", (long long)wall.tv_sec,
             wall.tv_nsec / 1000000, (long long)monotonic.tv_sec);
}

static void sleep_on(void) {
    struct timespec before, after, time = {3600, 0};
    clock_gettime(CLOCK_MONOTONIC, &before);
    nanosleep(&time, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    snprintf(answer, sizeof answer, "%lld s", (long long)(after.tv_sec - before.tv_sec));
}

static void tell_random(void) {
    unsigned char bytes[8];
    if (getentropy(bytes, sizeof bytes) != 0)
        return failed();
    char *at = answer;
    for (size_t i = 0; i < sizeof bytes; i++)
        at += sprintf(at, "%02x", bytes[i]);
}

static void tell_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return failed();
    size_t length = fread(answer, 1, sizeof answer - 1, file);
    answer[length] = 0;
    fclose(file);
}

static void write_file(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        return failed();
    fputs("written", file);
    fclose(file);
    say("written");
}

static void tell_folder(const char *path) {
    DIR *folder = opendir(path);
    if (!folder)
        return failed();
    answer[0] = 0;
    struct dirent *entry;
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            strlcat(answer, entry->d_name, sizeof answer);
    closedir(folder);
}

/* `from to` */
static void move(const char *paths) {
    char from[256];
    snprintf(from, sizeof from, "%s", paths);
    char *to = strchr(from, ' ');
    *to++ = 0;
    rename(from, to) ? failed() : say("moved");
}

static void print_lines(long lines) {
    for (long i = 0; i < lines; i++)
        printf("line %ld\n", i);
    fputs("to stderr, without an end", stderr);
    fflush(stdout);
    say("printed");
}

static void open_many(const char *path) {
    long opened = 0;
    while (opened < 100000 && opendir(path))
        opened++;
    snprintf(answer, sizeof answer, "%ld", opened);
}

static void act(const char *what, const char *with) {
    if (!strcmp(what, "time"))
        tell_time();
    else if (!strcmp(what, "sleep"))
        sleep_on();
    else if (!strcmp(what, "random"))
        tell_random();
    else if (!strcmp(what, "env"))
        say(getenv(with) ? getenv(with) : "(none)");
    else if (!strcmp(what, "read"))
        tell_file(with);
    else if (!strcmp(what, "write"))
        write_file(with);
    else if (!strcmp(what, "move"))
        move(with);
    else if (!strcmp(what, "list"))
        tell_folder(with);
    else if (!strcmp(what, "print"))
        print_lines(atol(with));
    else if (!strcmp(what, "many"))
        open_many(with);
    else if (!strcmp(what, "exit"))
        exit(atoi(with));
    else if (!strcmp(what, "abort")) {
        fputs("it gives up\n", stderr);
        abort();
    } else if (!strcmp(what, "poll"))
        for (;;) {
            struct timespec time = {0, 1};
            nanosleep(&time, NULL);
        }
    else
        say("?");
}

bool exports_dsh_plugin_tool_list_tools(exports_dsh_plugin_tool_list_json_t *tools,
                                        exports_dsh_plugin_tool_error_t *error) {
    (void)error;
    /* It has no machine while it says what it offers. */
    if (getenv("HOME"))
        exit(1);
    tools->len = 1;
    tools->ptr = malloc(sizeof *tools->ptr);
    tools->ptr[0] = copy(SCHEMA);
    return true;
}

bool exports_dsh_plugin_tool_may_overlap(exports_dsh_plugin_tool_call_t *call) {
    exports_dsh_plugin_tool_call_free(call);
    return true;
}

bool exports_dsh_plugin_tool_run(exports_dsh_plugin_tool_call_t *call,
                                 exports_dsh_plugin_tool_outcome_t *outcome,
                                 exports_dsh_plugin_tool_error_t *error) {
    (void)error;
    char what[256] = "";
    size_t length = call->arguments.len < sizeof what - 1 ? call->arguments.len : sizeof what - 1;
    memcpy(what, call->arguments.ptr, length);
    char *with = strchr(what, ' ');
    if (with)
        *with++ = 0;
    act(what, with ? with : "");
    outcome->content.len = 1;
    outcome->content.ptr = malloc(sizeof *outcome->content.ptr);
    outcome->content.ptr[0] = copy(answer);
    outcome->more.is_some = false;
    exports_dsh_plugin_tool_call_free(call);
    return true;
}
