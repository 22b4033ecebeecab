/* A small thread pool with one operation: parallel_for. */
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MAX_THREADS = 256,
    SPINS = 4000 /* about 20 to 100 microseconds: longer than the gap between two matmuls of a decode step */
};

/* Parts of the gate word. */
enum {
    ACTIVE = 0x1ff,  /* workers in the job */
    OPEN = 0x200,    /* set iff workers may still join it */
    JOB_SHIFT = 10   /* above: the number of the job, modulo 2^22 */
};

struct threads;

struct worker {
    struct threads *threads;
    int number; /* 1.. */
};

struct threads {
    int count;   /* threads that work, the caller included */
    int started; /* entries of `ids` that run */
    pthread_t ids[MAX_THREADS];
    struct worker workers[MAX_THREADS];

    /* The job. Written while the gate is closed and nobody is in it; read by workers that have joined. */
    range_body body;
    void *context;
    int n;
    int grain;
    atomic_int next; /* first item nobody has taken yet */

    atomic_uint gate;    /* job number, OPEN, ACTIVE: one word, so that joining and closing cannot overlap */
    atomic_int stop;
    atomic_int sleepers; /* workers that need `wake`; goes up before they look at the gate for the last time */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a new job, or the end */
    pthread_cond_t done; /* the last worker left a closed job */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void work(struct threads *threads, int worker)
{
    const int n = threads->n, grain = threads->grain;
    for (;;) {
        int begin = atomic_fetch_add_explicit(&threads->next, grain, memory_order_relaxed);
        if (begin >= n)
            return;
        threads->body(threads->context, begin, n - begin < grain ? n : begin + grain, worker);
    }
}

static unsigned job_of(unsigned gate)
{
    return gate >> JOB_SHIFT;
}

/* Waits for a job other than `seen`; spins first, because the next matmul is usually microseconds away. */
static void wait_for_job(struct threads *threads, unsigned seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        if (job_of(atomic_load_explicit(&threads->gate, memory_order_relaxed)) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&threads->lock);
    atomic_fetch_add(&threads->sleepers, 1);
    while (job_of(atomic_load(&threads->gate)) == seen)
        pthread_cond_wait(&threads->wake, &threads->lock);
    atomic_fetch_sub(&threads->sleepers, 1);
    pthread_mutex_unlock(&threads->lock);
}

/* Enters the current job, whose number goes to *seen, unless it is closed already. */
static int join(struct threads *threads, unsigned *seen)
{
    unsigned gate = atomic_load(&threads->gate);
    while (gate & OPEN)
        if (atomic_compare_exchange_weak(&threads->gate, &gate, gate + 1))
            break;
    *seen = job_of(gate);
    return (gate & OPEN) != 0;
}

static void leave(struct threads *threads)
{
    if ((atomic_fetch_sub(&threads->gate, 1) & (OPEN | ACTIVE)) == 1) {
        pthread_mutex_lock(&threads->lock);
        pthread_cond_signal(&threads->done);
        pthread_mutex_unlock(&threads->lock);
    }
}

static void *worker_main(void *argument)
{
    const struct worker *self = argument;
    struct threads *threads = self->threads;
    unsigned seen = 0;

    for (;;) {
        wait_for_job(threads, seen);
        if (atomic_load(&threads->stop))
            return NULL;
        if (join(threads, &seen)) {
            work(threads, self->number);
            leave(threads);
        }
    }
}

/* Opens the next job, whose fields the caller has set. */
static void open_job(struct threads *threads)
{
    const unsigned job = job_of(atomic_load(&threads->gate)) + 1;
    atomic_store(&threads->gate, job << JOB_SHIFT | OPEN);
    if (atomic_load(&threads->sleepers) > 0) {
        pthread_mutex_lock(&threads->lock);
        pthread_cond_broadcast(&threads->wake);
        pthread_mutex_unlock(&threads->lock);
    }
}

/*
 * Closes the job once no item is left, and waits for the workers that joined it. Who has not joined by now, because
 * the system runs something else in its place, is not waited for.
 */
static void close_job(struct threads *threads)
{
    atomic_fetch_and(&threads->gate, ~(unsigned)OPEN);
    for (int spin = 0; spin < SPINS; spin++) {
        if ((atomic_load_explicit(&threads->gate, memory_order_acquire) & ACTIVE) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&threads->lock);
    while (atomic_load(&threads->gate) & ACTIVE)
        pthread_cond_wait(&threads->done, &threads->lock);
    pthread_mutex_unlock(&threads->lock);
}

struct threads *threads_new(int count)
{
    struct threads *threads = calloc(1, sizeof *threads);
    if (!threads)
        return NULL;
    if (count <= 0)
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1)
        count = 1;
    if (count > MAX_THREADS)
        count = MAX_THREADS;
    threads->count = count;
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->wake, NULL);
    pthread_cond_init(&threads->done, NULL);
    while (threads->started < count - 1) {
        struct worker *self = &threads->workers[threads->started];
        *self = (struct worker){ threads, threads->started + 1 };
        if (pthread_create(&threads->ids[threads->started], NULL, worker_main, self) != 0) {
            threads_free(threads);
            return NULL;
        }
        threads->started++;
    }
    return threads;
}

void threads_free(struct threads *threads)
{
    if (!threads)
        return;
    atomic_store(&threads->stop, 1);
    open_job(threads);
    for (int i = 0; i < threads->started; i++)
        pthread_join(threads->ids[i], NULL);
    pthread_cond_destroy(&threads->done);
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
}

int threads_count(const struct threads *threads)
{
    return threads ? threads->count : 1;
}

void parallel_for(struct threads *threads, int n, int grain, range_body body, void *context)
{
    if (n <= 0)
        return;
    if (!threads || threads->count == 1 || n <= grain) {
        body(context, 0, n, 0);
        return;
    }
    threads->body = body;
    threads->context = context;
    threads->n = n;
    threads->grain = grain;
    atomic_store_explicit(&threads->next, 0, memory_order_relaxed);
    open_job(threads);
    work(threads, 0);
    close_job(threads);
}
