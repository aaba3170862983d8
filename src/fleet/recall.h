/* recall.h - what a failed action printed: looked up in the newest runs, for whoever asks after the run has ended.
 *
 *     stet_recall *r = stet_recall_open(project); // reads nothing yet
 *     stet_recall_add(r, "report", "fetch", &error); // error: {"message", ...}, as the space has it
 *     stet_recall_close(r);
 *
 * The space keeps the message of a failure, and the run what the command printed. An error gets the members `details`
 * {"exit","stdout","stderr"} (the last lines) and `runId` from the newest run in which that action of that piece failed
 * with the same message, if it is one of the last runs of the project. Otherwise it stays as it is.
 */
#ifndef STET_FLEET_RECALL_H
#define STET_FLEET_RECALL_H

#include "project/project.h"

typedef struct stet_recall stet_recall;

stet_recall *stet_recall_open(stet_project *project); /* borrowed */
void stet_recall_add(stet_recall *r, const char *piece, const char *node, stet_value *error);
void stet_recall_close(stet_recall *r);

#endif
