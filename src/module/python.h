/* python.h - `python` modules: functions of a file of the project. Private to src/module/python*.c.
 *
 *   python.c          the kind: descriptors, and one run
 *   python_process.c  processes that have imported a file, and the conversation with them
 *   python_code.c     what they have imported and opened, compared with documents
 *   python_inputs.c   inputs as arguments of the function, and cells
 *   python_child.py   the program of such a process; its text is part of the library
 *
 * A process imports one file, and forks for each action: no action sees what another one has left behind. Processes are
 * kept until what they have imported changes. They and their actions speak over one socket, a length of four bytes (the
 * highest first) and then JSON. The process, when it has imported the file:
 *
 *   {"op":"loaded","looks":[[PATH,STATE],...],"error":TEXT?}
 *
 * A state is the hash of a file's content, null if nothing is there, "" if something else is, "?" if it is not known. For each
 * action it is told {"export","inputs","handler",...} and forks. Then the action speaks:
 *
 *   {"op":"begin","pid":N}                  no answer
 *   {"op":"look","looks":[...]}             {} or {"refused":TEXT}
 *   {"op":"read","path":[...]}              {"value":...} or {} for nothing
 *   {"op":"write"|"push"|"send","path":[...],"value":...}    {}
 *   {"op":"done","result":...} or {"op":"failed","error":TEXT}
 *
 * And when it has ended, the process: {"op":"ended","code":N,"signal":N}. An answer {"error":TEXT} is an exception.
 *
 * Rules
 *
 *   Y1. The documents of everything that was imported are read before the function is called. If one says something else
 *       than what was imported, the file is looked at: either the process is outdated, and another one is started, or the
 *       document is, and the run is dropped and repeated.
 *   Y2. A file of the project that is opened while the action runs is read as a document before it is opened, and
 *       compared with its document again when the action has ended.
 *   Y3. Whatever can't be recorded is refused (python_child.py, watch), or documented in docs/what-counts.md.
 *   Y4. An effect is not repeated because it was not known what it reads: it opens what is declared, and nothing else.
 */
#ifndef STET_MODULE_PYTHON_H
#define STET_MODULE_PYTHON_H

#include "base/json.h"
#include "base/vec.h"
#include "files/files.h"
#include "os/proc.h"
#include "scheduler/module.h"

/* Increased when the same code may give other results than before: it is part of every fingerprint. */
#define PYTHON_VERSION       1
#define PYTHON_INTERPRETER   "/usr/bin/python3"
#define PYTHON_TIME_MS       600000
#define PYTHON_MEMORY_MB     4096
#define PYTHON_MAX_MESSAGE   (96u << 20)
#define PYTHON_MAX_PROCESSES 16

typedef struct python_look {
    char *path;      /* as in ids */
    bool there, any; /* `any`: what its content is does not matter; not there and any: nothing is known of it */
    stet_hash hash;
} python_look;
typedef STET_VEC(python_look) python_looks;

typedef struct python_process {
    char *key; /* interpreter and file */
    stet_proc proc;
    int fd, out[2];      /* the socket; files with its standard output and error */
    off_t taken[2];      /* of them, how much is in logs */
    stet_proc_id action; /* that runs; pid 0: none */
    python_looks looks;  /* what it has imported */
    char *error;         /* why the file can't be imported; NULL: it was */
    uint64_t used;
} python_process;

typedef struct python_limits {
    int64_t time_ms, memory_mb;
} python_limits;

typedef struct python_state {
    stet_module_host host;
    char *root;
    stet_files *files; /* of the space that is run, or NULL */
    python_limits limits;
    STET_VEC(python_process *) processes;
    uint64_t clock;
} python_state;

typedef struct python_opened {
    char *path;
    stet_look look;
} python_opened;

/* One run while it is under way. */
typedef struct python_run {
    python_state *s;
    stet_run *run;
    python_process *p;
    python_limits limits;
    bool handler, recorded;
    STET_VEC(python_opened) opened; /* Y2 */
    stet_names files;               /* paths that the function was given */
    bool outdated;                  /* a document that it has read is: the run is repeated on a newer state */
    bool touched;                   /* a file that it has opened has changed meanwhile: the run is repeated */
    stet_error error;               /* why a read or a write failed, whatever exception that became */
} python_run;

/* In python_process.c. The process that has imported a file, or has failed to. `run` gets what importing it prints. */
STET_CHECKED stet_status python_process_get(python_state *s, const char *interpreter, const char *file,
                                            python_process **out, stet_run *run, stet_error *err);
void python_process_end(python_state *s, python_process *p);
STET_CHECKED stet_status python_process_send(python_process *p, stet_value message, stet_error *err);
/* The next message. `r` (NULL: none) gets the output. STET_FAILED: the deadline is over, or the process is gone: it is to
 * be ended. STET_CANCELLED: somebody wants to stop. */
STET_CHECKED stet_status python_process_receive(python_state *s, python_process *p, python_run *r, int64_t deadline_us,
                                                stet_value *out, stet_error *err);
void python_process_logs(python_process *p, stet_run *run);
/* An action has ended: takes its output. */
void python_process_rest(python_process *p, stet_run *run);

/* In python_code.c. Parses and adds looks of a message. False: they are not looks. */
bool python_looks_add(python_state *s, stet_value list, python_looks *out);
void python_looks_release(python_looks *looks);
/* Reads the documents of these files, and compares. *as_seen is false if one of the files is not as it was seen: what
 * was imported is outdated. A document that is outdated is noted in `r`. */
STET_CHECKED stet_status python_code_read(python_run *r, const python_look *at, size_t count, bool *as_seen,
                                          stet_error *err);
/* Y2. Files that are opened now, or imported (`lazy`). `*refused`: why they may not be; empty if they may. */
STET_CHECKED stet_status python_code_opened(python_run *r, const python_looks *at, bool lazy, stet_buf *refused,
                                            stet_error *err);
/* Y2, at the end: sets r->touched if one of them has changed. */
STET_CHECKED stet_status python_code_again(python_run *r, stet_error *err);
void python_opened_release(python_run *r);

/* In python_inputs.c. The arguments as a message has them. */
STET_CHECKED stet_status python_inputs(python_run *r, stet_value *out, bool *positional, stet_error *err);
/* Answers a request about a path: read, write, push, send. `*answer` belongs to the caller. */
STET_CHECKED stet_status python_serve(python_run *r, const char *op, stet_value message, stet_value *answer,
                                      stet_error *err);

#endif
