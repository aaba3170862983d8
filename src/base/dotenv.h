/* dotenv.h - reads `.env` files: one NAME=VALUE per line.
 *
 *     stet_value env; // {"NAME": "VALUE"}
 *     const char *text = "NAME=VALUE";
 *     stet_status status = stet_dotenv_parse(text, strlen(text), &env, &err); // "line 3, column 1: ..."
 *
 *   # comment                  an empty line and a line that begins with # count for nothing
 *   export NAME=VALUE          `export` counts for nothing
 *   NAME=VALUE   # comment     without quotes: to the end of the line or to a # after white space, without white space
 *                              around it
 *   NAME='VALUE'               as it is, also over several lines
 *   NAME="VALUE"               \n \r \t \\ \" and \$ stand for characters; also over several lines
 *
 * Nothing is expanded: a value without quotes or in double quotes that has an unescaped `$` in it is refused, because
 * other readers of such files put variables there. So is a name that stands twice, and a NUL.
 */
#ifndef STET_BASE_DOTENV_H
#define STET_BASE_DOTENV_H

#include "base/error.h"

STET_CHECKED stet_status stet_dotenv_parse(const char *text, size_t len, stet_value *out, stet_error *err);

#endif
