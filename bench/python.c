/* python.c - a get through the Python package, compared with Python's own persistent caches (python_get.py, python_array.py). */

#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *source = getenv("STET_SOURCE"), *build = getenv("STET_BUILD");
    char command[8200];
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "PYTHONPATH='%s/python' /usr/bin/python3 '%s/bench/%s'",
                 build ? build : "build", source ? source : ".", i == 0 ? "python_get.py" : "python_array.py");
        failed |= system(command) != 0;
    }
    return failed;
}
