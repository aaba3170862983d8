/* Who drives runs: the one place where the fleet's operations and the layer that drives patterns meet. */
#include "surface/ops/runs_common.h"

stet_fleet_driver stet_runs_driver = NULL;
