/* pool.h - the threads that run operations.
 *
 *     stet_mcp_pool *p = stet_mcp_pool_new(16);
 *     stet_mcp_pool_submit(p, job); // runs job->run(job) on some thread, once
 *     bool ended = stet_mcp_pool_close(p, 5000); // false: some job does not end, and the pool is leaked
 *
 * Threads start on demand. Two of them never take a slow job, so that a quick job does not wait behind any number of
 * slow ones. Jobs of one kind run in the order of submission. With 0 threads a job runs inside submit: for tests that
 * need one order.
 *
 * A job belongs to the pool: `run` frees it. A job that is withdrawn before it began belongs to the caller again.
 */
#ifndef STET_MCP_POOL_H
#define STET_MCP_POOL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stet_mcp_job {
    struct stet_mcp_job *next;
    void (*run)(struct stet_mcp_job *job);
    bool slow;
} stet_mcp_job;

typedef struct stet_mcp_pool stet_mcp_pool;

#define STET_MCP_POOL_MIN 3

stet_mcp_pool *stet_mcp_pool_new(size_t threads); /* 0, or at least STET_MCP_POOL_MIN */
void stet_mcp_pool_submit(stet_mcp_pool *p, stet_mcp_job *job);
bool stet_mcp_pool_withdraw(stet_mcp_pool *p, stet_mcp_job *job);
/* Waits until every job has ended, at most timeout_ms. */
bool stet_mcp_pool_close(stet_mcp_pool *p, int timeout_ms);

#endif
