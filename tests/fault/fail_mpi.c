/* Preloaded into one rank: the n-th call of one function of MPI fails, without being made. FAIL_MPI is "MPI_Isend 3"; FAIL_MPI_COUNTS names
 * a file to which every function's number of calls is added at the end ("MPI_Isend 12"). */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every function that the program's answer depends on; MPI_Abort, MPI_Error_string and the like must work for it to say anything. */
#define MOST_CALLS(CALL)                                                                                                                \
    CALL(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *given), (argc, argv, wanted, given))                          \
    CALL(MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))                                        \
    CALL(MPI_Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))                                                                  \
    CALL(MPI_Comm_size, (MPI_Comm comm, int *size), (comm, size))                                                                  \
    CALL(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm * out), (comm, out))                                                               \
    CALL(MPI_Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *out), (comm, colour, key, out))                            \
    CALL(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out), (comm, type, key, info, out))      \
    CALL(MPI_Allgather, (const void *from, int count, MPI_Datatype type, void *to, int counts, MPI_Datatype types, MPI_Comm comm),  \
         (from, count, type, to, counts, types, comm))                                                                             \
    CALL(MPI_Iallreduce,                                                                                                           \
         (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),               \
         (from, to, count, type, op, comm, request))                                                                               \
    CALL(MPI_Iallgather,                                                                                                           \
         (const void *from, int count, MPI_Datatype type, void *to, int counts, MPI_Datatype types, MPI_Comm comm, MPI_Request *request),       \
         (from, count, type, to, counts, types, comm, request))                                                                    \
    CALL(MPI_Igather,                                                                                                              \
         (const void *from, int count, MPI_Datatype type, void *to, int counts, MPI_Datatype types, int root, MPI_Comm comm, MPI_Request *request), \
         (from, count, type, to, counts, types, root, comm, request))                                                              \
    CALL(MPI_Ibcast, (void *bytes, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),                    \
         (bytes, count, type, root, comm, request))                                                                                \
    CALL(MPI_Isend, (const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),        \
         (bytes, count, type, to, tag, comm, request))                                                                             \
    CALL(MPI_Improbe, (int from, int tag, MPI_Comm comm, int *found, MPI_Message *message, MPI_Status *status),                     \
         (from, tag, comm, found, message, status))                                                                                \
    CALL(MPI_Imrecv, (void *bytes, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),                       \
         (bytes, count, type, message, request))                                                                                   \
    CALL(MPI_Test, (MPI_Request *request, int *done, MPI_Status *status), (request, done, status))                                 \
    CALL(MPI_Get_elements_x, (const MPI_Status *status, MPI_Datatype type, MPI_Count *count), (status, type, count))                \
    CALL(MPI_Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),                \
         (size, unit, info, comm, base, win))                                                                                      \
    CALL(MPI_Win_shared_query, (MPI_Win win, int rank, MPI_Aint *size, int *unit, void *base), (win, rank, size, unit, base))
#define CALLS(CALL) MOST_CALLS(CALL) CALL(MPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))

#define NUMBER(name, parameters, arguments) NUMBER_##name,
enum { CALLS(NUMBER) FUNCTIONS };

#define NAME(name, parameters, arguments) #name,
static const char *const names[FUNCTIONS] = {CALLS(NAME)};
static long counts[FUNCTIONS];

/* A crash while MPI starts is told by a stack trace, for which nothing may have to be loaded then. */
static void look_for_unwinder(void)
{
    if (dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL)
        fprintf(stderr, "MPI starts without an unwinder\n");
}

static int fails(int function)
{
    const char *asked = getenv("FAIL_MPI");
    size_t length = strlen(names[function]);

    if (function == NUMBER_MPI_Init_thread)
        look_for_unwinder();
    counts[function]++;
    return asked != NULL && strncmp(asked, names[function], length) == 0 && asked[length] == ' ' &&
           strtol(asked + length, NULL, 10) == counts[function];
}

#define DEFINE(name, parameters, arguments)                                                                                        \
    int name parameters { return fails(NUMBER_##name) ? MPI_ERR_OTHER : P##name arguments; }
MOST_CALLS(DEFINE)

/* A rank that dies when all have come to the end, before its keeper knows: FAIL_MPI_DIES. One that comes there late, and stays: FAIL_MPI_LATE. */
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    static int times; /* the first is at the beginning */
    int ends = comm == MPI_COMM_WORLD && ++times > 1;
    int dies = ends && getenv("FAIL_MPI_DIES") != NULL;
    int late = ends && getenv("FAIL_MPI_LATE") != NULL;

    if (fails(NUMBER_MPI_Ibarrier))
        return MPI_ERR_OTHER;
    if (late)
        usleep(600000);
    int code = PMPI_Ibarrier(comm, request);

    if (dies || late)
        PMPI_Wait(request, MPI_STATUS_IGNORE);
    if (dies)
        raise(SIGKILL);
    if (late)
        usleep(600000);
    return code;
}

/* A rank that never comes back from its end: FAIL_MPI_STOPS. */
int MPI_Finalize(void)
{
    int code = PMPI_Finalize();

    if (getenv("FAIL_MPI_STOPS") != NULL)
        raise(SIGSTOP);
    return code;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAIL_MPI_COUNTS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;

    if (file == NULL)
        return;
    for (int i = 0; i < FUNCTIONS; i++)
        if (counts[i] > 0)
            fprintf(file, "%s %ld\n", names[i], counts[i]);
    fclose(file);
}
