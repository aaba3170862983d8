/* version.c - the version of the SQLite library in use. */

#include <sqlite3.h>

#include "db/db.h"

const char *stet_db_sqlite_version(void) {
    return sqlite3_libversion();
}
