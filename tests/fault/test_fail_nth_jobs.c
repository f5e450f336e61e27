/* Every call out of a whole job in one process fails in turn: the lead alone, the lead and a drafter over the loop channel, with results to
 * a journal, to a stream, and going on from a journal that an earlier job left; and the report at the end. */
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/engine/engine.h"
#include "tests/fault/fail_nth.h"
#include "verifier/job/audience.h"
#include "verifier/job/stats.h"
#include "verifier/result/journal_terms.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { SLOTS = 2, OUTPUTS = SLOTS * MESSAGE_MAX_COMMIT, IDS = SLOTS * MESSAGE_MAX_DRAFT * MESSAGE_MAX_SUPPORT, SUPPORT = 64 };
enum { ALL = 250, PROMPTS = 3, TOKENS = 6, RUN = 77, FILE_BYTES = 1 << 16, ROUND_NS = 100000 };

static char folder[] = "/tmp/test_fail_nth.XXXXXX";
static char file[64], journal[64], partial[64], its_terms[64], stream[64];
static int stream_fd;
static char left[FILE_BYTES]; /* what a job that was ended in the middle left as its journal */
static size_t left_bytes;
static int64_t now_ns; /* pretended: no call depends on how long another took */

static struct group self;
static struct tokenizer *tokenizer;
static struct model *target, *draft_model;

static struct options job_options(void)
{
    struct options options = {.request.sampling = sampling_default,
                              .request.max_tokens = TOKENS,
                              .rounds.draft_length = 3,
                              .request.ignore_eos = 1,
                              .request.echo = 1, /* with log p, which 0 asks for */
                              .rounds.max_sequences = SLOTS};

    options.request.sampling.accept = ACCEPT_COUPLED;
    options.request.sampling.temperature = 0.8;
    return options;
}

static enum status read_requests(const struct options *options, struct request_list *requests)
{
    static const char *const prompts[PROMPTS] = {"It is a truth", "", "Call me"};
    const struct request_terms terms = {.options = options, .tokenizer = tokenizer, .context = target->shape.context, .vocab = target->vocab};

    for (int i = 0; i < PROMPTS; i++)
        TRY(request_add_text(requests, &terms, prompts[i], strlen(prompts[i])));
    requests->request[PROMPTS - 1].choices = 2;
    requests->request[PROMPTS - 1].best_of = 3;
    return STATUS_OK;
}

/* What is open, in this order. */
enum stage { NOTHING, OUTPUT, DRAFT, TEAM, ENGINE };

struct job {
    enum stage stage;
    struct options options;
    struct request_list requests;
    struct draft draft;
    struct team team;
    struct output output;
    struct show show;
    struct audience audience;
    struct engine engine;
    int drafts, stops; /* with a drafter; ends after so many rounds */
};

static enum status begin_output(struct job *job)
{
    const struct journal_terms terms = {.options = &job->options, .requests = &job->requests, .context = target->shape.context, .target = 1};
    const struct journal_job begun = {.requests = &job->requests, .run = RUN, .host = "host"};

    return output_begin_under(&job->output, &terms, &begun);
}

static enum status decode(struct job *job)
{
    for (int round = 0; job->stops == 0 || round < job->stops; round++) {
        now_ns += job->drafts ? ROUND_NS : 0;
        TRY(engine_begin(&job->engine));
        if (job->engine.lead.slots.actives == 0)
            return output_finish(&job->output);
        TRY(lead_round(&job->engine.lead));
    }
    return STATUS_OK;
}

static enum status work(struct job *job, const char *path, int resume)
{
    const struct engine_terms terms = {.team = &job->team,
                                       .draft[0] = {.draft = &job->draft, .vocab = draft_model->vocab, .context = draft_model->shape.context},
                                       .drafters = job->drafts,
                                       .tokenizer = tokenizer,
                                       .requests = &job->requests,
                                       .watch = &job->audience.watch,
                                       .run = RUN,
                                       .slots = SLOTS,
                                       .outputs = OUTPUTS,
                                       .ids = IDS,
                                       .hash_logits = 1};

    job->options = job_options();
    job->stage = OUTPUT;
    TRY(output_open(&job->output, path, resume, 1));
    TRY(read_requests(&job->options, &job->requests));
    TRY(draft_open_model(&job->draft, draft_model, SLOTS, SUPPORT, 1));
    job->stage = DRAFT;
    TRY(team_open(&job->team, target, SLOTS, OUTPUTS, IDS));
    audience_init(&job->audience, &job->output, &job->show, NULL);
    job->stage = TEAM;
    TRY(begin_output(job));
    TRY(engine_open(&job->engine, &terms));
    job->stage = ENGINE;
    return decode(job);
}

/* Undoes what `work` did. Only the output is closed even if it did not open, as the program does. */
static enum status release(struct job *job)
{
    enum status status = STATUS_OK;

    switch (job->stage) {
    case ENGINE:
        engine_close(&job->engine); /* fall through */
    case TEAM:
        audience_release(&job->audience);
        team_close(&job->team); /* fall through */
    case DRAFT:
        draft_close(&job->draft); /* fall through */
    case OUTPUT:
        status = output_close(&job->output); /* fall through */
    case NOTHING:
        request_release(&job->requests);
    }
    return status;
}

static enum status run_job(const char *path, int resume, int drafts, int stops, uint64_t *output)
{
    struct job job = {.drafts = drafts, .stops = stops};
    enum status status, closed;

    now_ns = 1000000000;
    status = work(&job, path, resume);
    closed = release(&job);
    *output = 0;
    return status != STATUS_OK ? status : closed;
}

static void no_files(void)
{
    unlink(file);
    unlink(journal);
    unlink(partial);
    unlink(its_terms);
}

static void put_journal(void)
{
    int fd;

    no_files();
    fd = open(journal, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, left, left_bytes) != (ssize_t)left_bytes || close(fd) != 0)
        abort();
}

static void no_stream(void)
{
    if (ftruncate(stream_fd, 0) != 0 || lseek(stream_fd, 0, SEEK_SET) != 0)
        abort();
}

static size_t read_file(const char *path, char *bytes)
{
    int fd = open(path, O_RDONLY);
    ssize_t count = fd < 0 ? -1 : pread(fd, bytes, FILE_BYTES, 0);

    if (fd >= 0)
        close(fd);
    return count < 0 ? 0 : (size_t)count;
}

static uint64_t digest_file(const char *path)
{
    static char bytes[FILE_BYTES];

    return digest_bytes(bytes, read_file(path, bytes), 1);
}

/* The file is there, and its journal is not. */
static uint64_t collect_file(void)
{
    return access(journal, F_OK) == 0 ? 0 : digest_file(file);
}

static uint64_t collect_stream(void)
{
    return digest_file(stream);
}

static enum status alone_to_stream(uint64_t *output)
{
    return run_job(stream, 0, 0, 0, output);
}

static enum status alone_to_file(uint64_t *output)
{
    return run_job(file, 0, 0, 0, output);
}

static enum status pair_to_file(uint64_t *output)
{
    return run_job(file, 0, 1, 0, output);
}

static enum status resumed(uint64_t *output)
{
    return run_job(file, 1, 0, 0, output);
}

static enum status write_report(uint64_t *output)
{
    struct hello hello[2] = {{.program = "tandem", .host = "a", .model = "t\xFF"}, {.program = "tandem", .host = "b", .model = "d"}};
    const struct options options = job_options();
    const struct figures figures = {.tokens = 7, .rounds = 3, .tested = {3, 2}, .accepted_at = {2, 1}, .overlap = 0.5, .wall_ns = 1000};
    struct peer peer = {.name = 0, .why = "has ended", .lost = 1};
    const struct peers peers = {.peer = &peer, .count = 1};
    const struct stats stats = {
        .peers = &peers, .options = &options, .target = "t\xFF", .hello = hello, .ranks = 2, .solo = &figures, .figures = &figures};

    *output = 0;
    return stats_write(&stats, stream);
}

static int set_up(void **state)
{
    const struct model_options options = {.threads = 1, .max_rows = (int)OUTPUTS > (int)BACKEND_MAX_ROWS ? (int)OUTPUTS : (int)BACKEND_MAX_ROWS};
    uint64_t unused;

    (void)state;
    log_init("test_fail_nth", LOG_ERROR);
    json_object_seed(1);
    clock_pretend(&now_ns);
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/out.jsonl", folder);
    snprintf(journal, sizeof journal, "%s/out.jsonl.journal", folder);
    snprintf(partial, sizeof partial, "%s/out.jsonl.partial", folder);
    snprintf(its_terms, sizeof its_terms, "%s/out.jsonl.terms", folder);
    stream_fd = memfd_create("stream", 0);
    assert_true(stream_fd >= 0);
    snprintf(stream, sizeof stream, "/proc/self/fd/%d", stream_fd);
    group_open_self(&self);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &tokenizer), STATUS_OK);
    assert_int_equal(model_open(TANDEM_SOURCE_DIR "/launch/demo/target", &self, &options, &target), STATUS_OK);
    assert_int_equal(model_open(TANDEM_SOURCE_DIR "/launch/demo/draft", &self, &options, &draft_model), STATUS_OK);
    assert_int_equal(run_job(file, 0, 0, 2, &unused), STATUS_OK); /* ended after two rounds, one prompt done */
    left_bytes = read_file(journal, left);
    assert_true(left_bytes > 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    model_close(draft_model);
    model_close(target);
    tokenizer_close(tokenizer);
    group_close(&self);
    close(stream_fd);
    no_files();
    return rmdir(folder);
}

static void test_fail_nth__jobs(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){"a job to a stream", alone_to_stream, no_stream, collect_stream}, ALL);
    fail_nth(&(struct fail_scenario){"a job to a file", alone_to_file, no_files, collect_file}, ALL);
    fail_nth(&(struct fail_scenario){"a pair to a file", pair_to_file, no_files, collect_file}, ALL);
    fail_nth(&(struct fail_scenario){"a job that goes on", resumed, put_journal, collect_file}, ALL);
}

static void test_fail_nth__reports(void **state)
{
    (void)state;
    fail_nth(&(struct fail_scenario){"a report", write_report, no_stream, collect_stream}, ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_nth__jobs),
        cmocka_unit_test(test_fail_nth__reports),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
