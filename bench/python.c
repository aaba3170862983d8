/* python.c - a get through the Python package, compared with Python's own persistent caches (python_get.py). */

#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *source = getenv("STET_SOURCE"), *build = getenv("STET_BUILD");
    char command[8200];
    snprintf(command, sizeof command, "PYTHONPATH='%s/python' /usr/bin/python3 '%s/bench/python_get.py'",
             build ? build : "build", source ? source : ".");
    return system(command) == 0 ? 0 : 1;
}
