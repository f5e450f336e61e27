/* Where the last events of a rank go. It is said before MPI starts, which may hang: so the rank and the job's name come from the launcher. */
#include "common/world/world.h"

#include "common/base/recorder.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *first_of(const char *a, const char *b, const char *c, const char *otherwise)
{
    const char *name[] = {a, b, c};

    for (int i = 0; i < 3; i++)
        if (getenv(name[i]) != NULL)
            return getenv(name[i]);
    return otherwise;
}

void world_record(const char *folder, const char *who)
{
    int rank = atoi(first_of("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "0"));
    const char *temporary = getenv("TMPDIR");
    char alone[24], usual[512];

    snprintf(alone, sizeof alone, "%d", (int)getpid());
    snprintf(usual, sizeof usual, "%s/tandem-%s", temporary != NULL ? temporary : "/tmp",
             first_of("PMIX_NAMESPACE", "SLURM_JOB_ID", "PMI_JOBID", alone));
    recorder_open(folder != NULL ? folder : usual, rank, who, folder == NULL);
}
