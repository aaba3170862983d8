/* prompt.c - MCP prompts for common jobs. */

#include "mcp/prompt.h"

#include <string.h>

#include "base/suggest.h"

#define MAX_ARGUMENTS 2
#define MAX_NEEDS     4

typedef struct argument {
    const char *name;
    const char *summary;
    bool required;
} argument;

/* {NAME} in `text` is the argument; a part in [brackets] is left out if an optional argument named in it is absent. */
typedef struct prompt {
    const char *name, *title, *description;
    argument arguments[MAX_ARGUMENTS];
    const char *needs[MAX_NEEDS]; /* operations */
    const char *text;
} prompt;

static const prompt prompts[] = {
    {.name = "check-project",
     .title = "Check the project",
     .description = "Look over every store of the project and explain what is wrong, if anything is",
     .needs = {"check"},
     .text =
         "Run stet_check on this project. If it finds nothing, say so in one sentence. Else explain each problem in "
         "plain words, say what it endangers, and propose what to do. Change nothing without asking me first."},
    {.name = "explain-run",
     .title = "Explain a run",
     .description = "Say what a run did, and why it failed if it did",
     .arguments = {{"run", "The run's id, or the beginning of it", true}},
     .needs = {"runs show"},
     .text =
         "Look at run {run} with stet_runs_show. Say in a few sentences what it was for, how far it came and how long "
         "it took. If a task failed: name it, quote the part of its error that matters, and say what you think the "
         "cause is and what to try next. Do not run anything."},
    {.name = "resume-work",
     .title = "Find and resume interrupted work",
     .description = "List runs that were interrupted or failed, and resume what is worth it",
     .needs = {"runs search", "runs resume"},
     .text =
         "Use stet_runs_search to find runs that were interrupted or that failed. For each, newest first, show with "
         "stet_runs_resume what would run. Propose which to resume and why, and wait for my answer before you drive "
         "any."},
    {.name = "tidy-up",
     .title = "Free disk space",
     .description = "See what could be freed in the project's stores, then free it",
     .needs = {"gc"},
     .text =
         "Run stet_gc with dry_run true. Tell me, store by store, what would be freed. If I agree, run it again with "
         "dry_run false and report what was freed."},
    {.name = "what-is-stale",
     .title = "What is out of date",
     .description = "Say which results do not stand any more, and why",
     .arguments = {{"piece", "Only this piece", false}},
     .needs = {"status", "why"},
     .text =
         "Use stet_status[ for piece {piece}] to see which actions do not stand. For the most important of them ask "
         "stet_why. Explain in plain words what changed and what would have to run again. Do not run anything."},
    {.name = "work-with-documents",
     .title = "Read and change documents",
     .description = "Do something with the project's documents, carefully",
     .arguments = {{"task", "What is to be done", true}},
     .needs = {"get", "set"},
     .text = "This project keeps JSON documents; a cell is ID/KEY/KEY. Read with stet_value_get before you write with "
             "stet_set, change only what the task asks for, and tell me the cells you changed.\n\nThe task: {task}"},
};

static bool offered(const stet_mcp_tools *tools, const prompt *p) {
    for (size_t i = 0; i < MAX_NEEDS && p->needs[i]; i++) {
        const stet_op *op = stet_op_find(p->needs[i]);
        if (!op || !stet_mcp_tools_offer(tools, op))
            return false;
    }
    return true;
}

stet_value stet_mcp_prompts_list(const stet_mcp_tools *tools, bool titles) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        const prompt *p = &prompts[i];
        if (!offered(tools, p))
            continue;
        stet_value v = stet_value_object(), arguments = stet_value_array();
        for (size_t k = 0; k < MAX_ARGUMENTS && p->arguments[k].name; k++) {
            stet_value a = stet_value_object();
            stet_value_put(&a, "name", stet_value_string(p->arguments[k].name));
            stet_value_put(&a, "description", stet_value_string(p->arguments[k].summary));
            stet_value_put(&a, "required", stet_value_bool(p->arguments[k].required));
            stet_value_push(&arguments, a);
        }
        stet_value_put(&v, "name", stet_value_string(p->name));
        if (titles)
            stet_value_put(&v, "title", stet_value_string(p->title));
        stet_value_put(&v, "description", stet_value_string(p->description));
        stet_value_put(&v, "arguments", arguments);
        stet_value_push(&list, v);
    }
    return list;
}

static const argument *find_argument(const prompt *p, const char *name) {
    for (size_t i = 0; i < MAX_ARGUMENTS && p->arguments[i].name; i++)
        if (strcmp(p->arguments[i].name, name) == 0)
            return &p->arguments[i];
    return NULL;
}

static stet_status check_arguments(const prompt *p, stet_value given, stet_error *err) {
    if (stet_value_type(given) != STET_TYPE_OBJECT && stet_value_type(given) != STET_TYPE_NULL)
        return stet_fail(err, STET_INVALID, "arguments are an object");
    for (size_t i = 0; i < stet_value_count(given); i++) {
        const char *key = stet_value_key_at(given, i, NULL);
        if (!find_argument(p, key))
            return stet_fail(err, STET_INVALID, "prompt %s has no argument \"%.100s\"", p->name, key);
        if (stet_value_type(stet_value_at(given, i)) != STET_TYPE_STRING)
            return stet_fail(err, STET_INVALID, "argument %s: a string expected", key);
    }
    for (size_t i = 0; i < MAX_ARGUMENTS && p->arguments[i].name; i++)
        if (p->arguments[i].required &&
            stet_value_type(stet_value_get(given, p->arguments[i].name)) != STET_TYPE_STRING)
            return stet_fail(err, STET_INVALID, "prompt %s: argument %s is missing (%s)", p->name, p->arguments[i].name,
                             p->arguments[i].summary);
    return STET_OK;
}

/* Writes one {NAME}; returns what follows it. *absent is set if there is no such argument. */
static const char *put_argument(const char *at, stet_value given, stet_buf *out, bool *absent) {
    const char *end = strchr(at, '}');
    stet_value v;
    size_t len;
    if (stet_value_find(given, at + 1, (size_t)(end - at - 1), &v)) {
        const char *text = stet_value_as_string(&v, &len);
        stet_buf_add(out, text, len);
    } else {
        *absent = true;
    }
    return end + 1;
}

static void fill(const char *text, stet_value given, stet_buf *out) {
    size_t begun = 0;
    bool absent = false;
    while (*text) {
        if (*text == '{') {
            text = put_argument(text, given, out, &absent);
            continue;
        }
        if (*text == '[') {
            begun = out->len;
            absent = false;
        } else if (*text == ']') {
            if (absent)
                out->len = begun;
        } else {
            stet_buf_char(out, *text);
        }
        text++;
    }
}

stet_status stet_mcp_prompt_get(const stet_mcp_tools *tools, const char *name, stet_value arguments, stet_value *out,
                                stet_error *err) {
    stet_suggest s = stet_suggest_begin(name);
    const prompt *p = NULL;
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        if (!offered(tools, &prompts[i]))
            continue;
        stet_suggest_offer(&s, prompts[i].name);
        if (strcmp(prompts[i].name, name) == 0)
            p = &prompts[i];
    }
    if (!p) {
        stet_fail(err, STET_NOT_FOUND, "unknown prompt \"%.100s\"", name);
        if (s.best)
            stet_hint(err, "did you mean %s?", s.best);
        return STET_NOT_FOUND;
    }
    stet_status status = check_arguments(p, arguments, err);
    if (status != STET_OK)
        return status;
    stet_buf text = STET_BUF(0);
    fill(p->text, arguments, &text);
    stet_value content = stet_value_object(), message = stet_value_object(), messages = stet_value_array();
    stet_value_put(&content, "type", stet_value_string("text"));
    stet_value_put(&content, "text", stet_value_string_n(stet_buf_cstr(&text), text.len));
    stet_value_put(&message, "role", stet_value_string("user"));
    stet_value_put(&message, "content", content);
    stet_value_push(&messages, message);
    *out = stet_value_object();
    stet_value_put(out, "description", stet_value_string(p->description));
    stet_value_put(out, "messages", messages);
    stet_buf_release(&text);
    return STET_OK;
}
