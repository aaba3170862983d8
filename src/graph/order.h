/* order.h - ranks of nodes, and which nodes are certain to be wanted. See process.h for both terms.
 *
 * Sets "rank" (an integer) and, where it holds, "certain" in each row. Linear in nodes and links, and iterative: chains
 * and cycles of any length are fine.
 */
#ifndef STET_GRAPH_ORDER_H
#define STET_GRAPH_ORDER_H

#include "graph/process.h"

void stet_order_compute(stet_process *g, const stet_process_modules *modules);

#endif
