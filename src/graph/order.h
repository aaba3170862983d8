/* order.h - ranks of nodes, and which of them are certain to be wanted; see process.h for what the words mean.
 *
 * Puts "rank" (an integer) and, where it holds, "certain" into each row. Linear in nodes and links, iterative: chains
 * and cycles of any length are fine. */
#ifndef STET_GRAPH_ORDER_H
#define STET_GRAPH_ORDER_H

#include "graph/process.h"

void stet_order_compute(stet_process *g, const stet_process_modules *modules);

#endif
