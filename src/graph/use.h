/* use.h - how a module treats one of its inputs. It decides what must be fresh before a first run, and whether an edge
 * may be taken for granted without having been seen. */
#ifndef STET_GRAPH_USE_H
#define STET_GRAPH_USE_H

typedef enum stet_input_use {
    STET_INPUT_ALWAYS, /* every run reads it, or something in it */
    STET_INPUT_MAYBE,  /* a run may do without: known only afterwards. Made fresh before a first run. */
    STET_INPUT_CHOSEN  /* read only if another input says so: not made fresh before a run asks for it */
} stet_input_use;

#endif
