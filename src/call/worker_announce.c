/* worker_announce.c - what a worker says of itself, and which calls it may take. */

#include <string.h>
#include <unistd.h>

#include "call/function.h"
#include "call/worker_internal.h"
#include "os/clock.h"

static stet_value labels_value(const stet_worker_opts *o) {
    stet_value list = stet_value_array();
    for (size_t i = 0; o->labels && o->labels[i]; i++)
        stet_value_push(&list, stet_value_string(o->labels[i]));
    return list;
}

stet_status stet_worker_announce(stet_hub *hub, const char *name, const stet_worker_opts *o, int64_t started_ms,
                                 size_t running, bool draining, stet_error *err) {
    char host[256] = "";
    stet_value v = stet_value_object(), text;
    if (gethostname(host, sizeof host - 1) != 0 ||
        stet_value_string_checked(host, strlen(host), &text, NULL) != STET_OK)
        text = stet_value_string("unknown");
    stet_value_put(&v, "host", text);
    stet_value_put(&v, "pid", stet_value_int(getpid()));
    stet_value_put(&v, "jobs", stet_value_int((int64_t)o->jobs));
    stet_value_put(&v, "running", stet_value_int((int64_t)running));
    stet_value_put(&v, "labels", labels_value(o));
    stet_value_put(&v, "state", stet_value_string(draining ? "draining" : running ? "working" : "idle"));
    stet_value_put(&v, "started", stet_time_value(started_ms));
    stet_status status = stet_hub_announce(hub, name, v, 3 * STET_WORKER_ANNOUNCE_MS, err);
    stet_value_release(v);
    return status;
}

static bool has_label(const stet_worker_opts *o, const char *label) {
    for (size_t i = 0; o->labels && o->labels[i]; i++)
        if (strcmp(o->labels[i], label) == 0)
            return true;
    return false;
}

bool stet_worker_fits(const stet_worker_opts *o, const char *function) {
    stet_function f;
    bool fits = true;
    if (!stet_calls_is_local(function) || stet_function_parse(function, &f, NULL) != STET_OK)
        return true; /* the backend says what is wrong with it */
    for (char **label = f.needs.at; label && *label; label++)
        fits &= has_label(o, *label);
    stet_function_release(&f);
    return fits;
}
