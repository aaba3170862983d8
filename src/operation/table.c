/* table.c - the table of operations and stores: one line per array of operations, one line per store.
 *
 * Arrays are declared and defined in src/operation/<noun>.c and end with a row whose name is NULL.
 */

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "operation/op.h"

#define OP_ARRAYS(X)                                                                                                   \
    X(stet_ops_doc)                                                                                                    \
    X(stet_ops_branch)                                                                                                 \
    X(stet_ops_space)                                                                                                  \
    X(stet_ops_watch)                                                                                                  \
    X(stet_ops_init)                                                                                                   \
    X(stet_ops_project)                                                                                                \
    X(stet_ops_trust)                                                                                                  \
    X(stet_ops_stores)                                                                                                 \
    X(stet_ops_version)                                                                                                \
    X(stet_ops_doctor)                                                                                                 \
    X(stet_ops_runs)                                                                                                   \
    X(stet_ops_runs_manage)                                                                                            \
    X(stet_ops_runs_files)                                                                                             \
    X(stet_ops_runs_delete)                                                                                            \
    X(stet_ops_registry)                                                                                               \
    X(stet_ops_history)                                                                                                \
    X(stet_ops_queue)                                                                                                  \
    X(stet_ops_persist)                                                                                                \
    X(stet_ops_persist_manage)                                                                                         \
    X(stet_ops_pattern)                                                                                                \
    X(stet_ops_observe)                                                                                                \
    X(stet_ops_piece)                                                                                                  \
    X(stet_ops_send)                                                                                                   \
    X(stet_ops_run)                                                                                                    \
    X(stet_ops_status)                                                                                                 \
    X(stet_ops_action)                                                                                                 \
    X(stet_ops_accept)                                                                                                 \
    X(stet_ops_why)                                                                                                    \
    X(stet_ops_file)                                                                                                   \
    X(stet_ops_dag)                                                                                                    \
    X(stet_ops_dag_object)                                                                                             \
    X(stet_ops_remote)                                                                                                 \
    X(stet_ops_hub)                                                                                                    \
    X(stet_ops_call)                                                                                                   \
    X(stet_ops_worker)                                                                                                 \
    /* one line each */

#define STORES(X)                                                                                                      \
    X(stet_store_project)                                                                                              \
    X(stet_store_memory)                                                                                               \
    X(stet_store_runs)                                                                                                 \
    X(stet_store_persist)                                                                                              \
    X(stet_store_repo)                                                                                                 \
    X(stet_store_files)                                                                                                \
    /* one line each */

#define DECLARE_OPS(name) extern const stet_op name[];
#define LIST(name)        name,
OP_ARRAYS(DECLARE_OPS)
static const stet_op *const arrays[] = {OP_ARRAYS(LIST)};

#define DECLARE_STORE(name) extern const stet_store name;
#define LIST_STORE(name)    &name,
STORES(DECLARE_STORE)
static const stet_store *const stores[] = {STORES(LIST_STORE)};

#define MAX_OPS 256

static const stet_op *sorted[MAX_OPS];
static size_t sorted_len;
static pthread_once_t sort_once = PTHREAD_ONCE_INIT;

static int by_name(const void *a, const void *b) {
    return strcmp((*(const stet_op *const *)a)->name, (*(const stet_op *const *)b)->name);
}

static const stet_op *added[4];
static size_t added_len;

void stet_op_add(const stet_op *ops) {
    assert(sorted_len == 0 && added_len < sizeof added / sizeof *added);
    added[added_len++] = ops;
}

static void collect(const stet_op *op) {
    for (; op->name; op++) {
        assert(sorted_len < MAX_OPS);
        sorted[sorted_len++] = op;
    }
}

static void sort_table(void) {
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        collect(arrays[i]);
    for (size_t i = 0; i < added_len; i++)
        collect(added[i]);
    qsort(sorted, sorted_len, sizeof *sorted, by_name);
    for (size_t i = 1; i < sorted_len; i++)
        assert(strcmp(sorted[i - 1]->name, sorted[i]->name) < 0);
}

size_t stet_op_count(void) {
    pthread_once(&sort_once, sort_table);
    return sorted_len;
}

const stet_op *stet_op_at(size_t index) {
    return index < stet_op_count() ? sorted[index] : NULL;
}

const stet_op *stet_op_find(const char *name) {
    size_t low = 0, high = stet_op_count();
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, sorted[middle]->name);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t stet_store_count(void) {
    return sizeof stores / sizeof *stores;
}

const stet_store *stet_store_at(size_t index) {
    return index < stet_store_count() ? stores[index] : NULL;
}
