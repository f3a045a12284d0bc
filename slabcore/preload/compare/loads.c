/* Loads of the well-known suites of allocator tests, made anew from their definitions, with fixed work
 * instead of fixed time: `loads NAME`; `loads NAME forever` repeats it and writes the nanoseconds of processor time
 * of each. Definitions: mimalloc-bench's bench.sh and, for each:
 *
 *   larson    Larson and Krishnan: threads replace random ones of their objects, and hand all to a new thread
 *   scratch   Hoard's cache-scratch: each thread frees an object of the main thread, then works on its own
 *   thrash    Hoard's cache-thrash: the same without the first object
 *   xmalloc   Lever and Boreham: some threads allocate batches, others free them
 *   mstress   mimalloc's: many sizes, half is kept, objects cross threads, threads end
 *   simple    glibc's bench-malloc-simple: n objects of one size, freed half in order and half backwards
 *   thread    glibc's bench-malloc-thread: random replacement of 1024 objects, inverse square of sizes
 *   random    OLogN's alloc-test: one thread, random replacement of many objects of all sizes
 *   large     5 to 25 MiB, 20 live
 *   grow      strings and tables that grow by realloc
 *   buffer    buffers that grow to many MiB by realloc, by half or in small steps, and are cut to what is kept
 *   slabs     slabs come and go: 30,000 objects of 1 KiB, and none, again and again; hardly anything is at hand
 *   tree      builds, walks and frees trees of small nodes, as cfrac and espresso do: few sizes, short lives
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2 };

static uint64_t next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return *state = x;
}

static void *get(size_t size) {
    char *p = malloc(size);
    if (!p)
        abort();
    p[0] = 1, p[size - 1] = 1;
    return p;
}

static void together(void *(*work)(void *), void **arguments) {
    pthread_t ids[THREADS * 2];
    int n = 0;
    for (; arguments[n]; n++)
        pthread_create(&ids[n], NULL, work, arguments[n]);
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
}

/* larson 8 1000 5000 */
struct larson { uint64_t seed; void *kept[5000]; int rounds; };
static void *larson_thread(void *argument) {
    struct larson *it = argument;
    for (int i = 0; i < 250000; i++) {
        size_t at = next(&it->seed) % 5000;
        free(it->kept[at]);
        it->kept[at] = get(8 + next(&it->seed) % 993);
    }
    if (--it->rounds > 0) {
        pthread_t id;
        pthread_create(&id, NULL, larson_thread, it);
        pthread_join(id, NULL);
    }
    return NULL;
}
static void larson(void) {
    static struct larson all[THREADS];
    void *arguments[THREADS + 1] = {0};
    uint64_t seed = 4141;
    for (int t = 0; t < THREADS; t++) {
        all[t].seed = 4141 + (uint64_t)t, all[t].rounds = 12, arguments[t] = &all[t];
        for (int i = 0; i < 5000; i++)
            all[t].kept[i] = get(8 + next(&seed) % 993);
    }
    together(larson_thread, arguments);
}

static void *scratch_thread(void *first) {
    if (first != (void *)1)
        free(first);
    for (int i = 0; i < 1000; i++) {
        volatile char *p = malloc(1);
        for (int j = 0; j < 600000; j++)
            p[0]++;
        free((void *)p);
    }
    return NULL;
}
static void scratch(void) {
    void *arguments[THREADS + 1] = {0};
    for (int t = 0; t < THREADS; t++)
        arguments[t] = malloc(1);
    together(scratch_thread, arguments);
}
static void thrash(void) {
    void *arguments[THREADS + 1] = {0};
    for (int t = 0; t < THREADS; t++)
        arguments[t] = (void *)1;
    together(scratch_thread, arguments);
}

/* xmalloc-test -s 64: batches of 4096 pass a list with a lock. */
enum { BATCH = 4096, BATCHES = 600, WAITING = 100 };
struct batch { struct batch *below; void *objects[BATCH]; };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *first;
    int waiting, left;
} list = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, BATCHES};
static void *xmalloc_thread(void *which) {
    int producer = which == (void *)1, made = 0;
    for (;;) {
        struct batch *batch = NULL;
        if (producer) {
            if (made++ == BATCHES / THREADS)
                return NULL;
            batch = malloc(sizeof *batch);
            for (int i = 0; i < BATCH; i++)
                batch->objects[i] = memset(malloc(64), i, 64);
        }
        pthread_mutex_lock(&list.lock);
        if (producer) {
            while (list.waiting >= WAITING)
                pthread_cond_wait(&list.changed, &list.lock);
            batch->below = list.first, list.first = batch, list.waiting++;
        } else {
            while (!list.first && list.left)
                pthread_cond_wait(&list.changed, &list.lock);
            batch = list.first;
            if (batch)
                list.first = batch->below, list.waiting--, list.left--;
        }
        pthread_cond_broadcast(&list.changed);
        pthread_mutex_unlock(&list.lock);
        if (producer)
            continue;
        if (!batch)
            return NULL;
        for (int i = 0; i < BATCH; i++)
            free(batch->objects[i]);
        free(batch);
    }
}
static void xmalloc(void) {
    void *arguments[2 * THREADS + 1] = {0};
    for (int t = 0; t < THREADS; t++)
        arguments[t] = (void *)1, arguments[THREADS + t] = (void *)2;
    together(xmalloc_thread, arguments);
}

/* mstress 2 50 25 */
static void *transfer[1000];
static void *mstress_thread(void *argument) {
    uint64_t seed = *(uint64_t *)argument;
    size_t allocs = 100 * 50 * (seed % 8 + 1), kept_n = 0;
    void **kept = calloc(allocs, sizeof *kept);
    void **data = calloc(allocs, sizeof *data);
    for (size_t i = 0; i < allocs; i++) {
        size_t words = (size_t)1 << next(&seed) % 5;
        uint64_t odd = next(&seed) % 10000;
        words *= odd < 1 ? 10000 : odd < 11 ? 1000 : odd < 111 ? 100 : 1;
        size_t *p = calloc(words, sizeof *p);
        p[0] = words;
        if (next(&seed) % 2)
            kept[kept_n++] = p;
        else
            data[i] = p;
        if (next(&seed) % 3) {
            size_t at = next(&seed) % (i + 1);
            free(data[at]), data[at] = NULL;
        }
        if (next(&seed) % 4 == 0)
            data[i] = __atomic_exchange_n(&transfer[next(&seed) % 1000], data[i], __ATOMIC_ACQ_REL);
    }
    for (size_t i = 0; i < allocs; i++)
        free(data[i]);
    for (size_t i = 0; i < kept_n; i++)
        free(kept[i]);
    free(data), free(kept);
    return NULL;
}
static void mstress(void) {
    static uint64_t seeds[THREADS];
    for (int round = 0; round < 60; round++) {
        void *arguments[THREADS + 1] = {0};
        for (int t = 0; t < THREADS; t++)
            seeds[t] = (uint64_t)(round * THREADS + t + 5), arguments[t] = &seeds[t];
        together(mstress_thread, arguments);
    }
    for (int i = 0; i < 1000; i++)
        free(transfer[i]);
}

static void simple(void) {
    static const int sizes[] = {16, 32, 64}, counts[] = {25, 100, 400, 1600};
    static void *kept[1600];
    for (int s = 0; s < 3; s++)
        for (int c = 0; c < 4; c++)
            for (int round = 0; round < 4000000 / counts[c]; round++) {
                int n = counts[c];
                for (int i = 0; i < n; i++)
                    kept[i] = memset(malloc((size_t)sizes[s]), i, (size_t)sizes[s]);
                for (int i = 0; i < n / 2; i++)
                    free(kept[i]);
                for (int i = n - 1; i >= n / 2; i--)
                    free(kept[i]);
            }
}

static void *thread_thread(void *argument) {
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    static const size_t least = 4, most = 32768;
    void **kept = calloc(1024, sizeof *kept);
    for (int i = 0; i < 12000000 / THREADS; i++) {
        size_t at = next(&seed) % 1024;
        free(kept[at]);
        /* The density falls with the square of the size. */
        double u = (double)(next(&seed) >> 11) / 9007199254740992.0;
        kept[at] = get((size_t)(least / (1 - u * (1 - (double)least / most))));
    }
    for (int i = 0; i < 1024; i++)
        free(kept[i]);
    free(kept);
    return NULL;
}
static void thread(void) {
    void *arguments[THREADS + 1] = {0};
    for (int t = 0; t < THREADS; t++)
        arguments[t] = (void *)(uintptr_t)(t + 7);
    together(thread_thread, arguments);
}

static void random_sizes(void) {
    enum { N = 1 << 17 };
    static void *kept[N];
    uint64_t seed = 11;
    for (int i = 0; i < 15000000; i++) {
        size_t at = next(&seed) % N;
        if (kept[at]) {
            free(kept[at]), kept[at] = NULL;
        } else {
            size_t bits = next(&seed) % 10;
            kept[at] = get(((size_t)8 << bits >> 1) + next(&seed) % ((size_t)8 << bits >> 1));
        }
    }
    for (int i = 0; i < N; i++)
        free(kept[i]), kept[i] = NULL;
}

static void large(void) {
    static char *kept[20];
    uint64_t seed = 3;
    for (int i = 0; i < 1500; i++) {
        size_t at = next(&seed) % 20, size = (5u << 20) + next(&seed) % (20u << 20);
        free(kept[at]);
        kept[at] = malloc(size);
        for (size_t page = 0; page < size; page += 1 << 16)
            kept[at][page] = 1;
    }
}

static void grow(void) {
    uint64_t seed = 9;
    for (int round = 0; round < 6000; round++) {
        char *text = NULL;
        size_t length = 0, room = 0, end = 100 + next(&seed) % 60000;
        while (length < end) {
            size_t piece = 1 + next(&seed) % 60;
            if (length + piece > room)
                text = realloc(text, room = (length + piece) * 5 / 4 + 16);
            memset(text + length, 'x', piece);
            length += piece;
        }
        void **table = NULL;
        for (size_t n = 1; n < 3000; n++)
            if (n % 16 == 1)
                table = realloc(table, (n + 16) * sizeof *table), table[n] = text;
        free(table), free(text);
    }
}

static void buffer(void) {
    enum { MIB = 1 << 20, PIECE = 4096 };
    for (size_t round = 0; round < 24; round++) {
        size_t room = 0, end = (size_t)(4 + round % 6 * 12) * MIB, step = round % 2 ? 16 * PIECE : 0;
        char *bytes = NULL;
        for (size_t n = 0; n < end; n += PIECE) {
            if (n + PIECE > room)
                bytes = realloc(bytes, room = step ? room + step : room * 3 / 2 + PIECE);
            memset(bytes + n, 'x', PIECE);
        }
        bytes = realloc(bytes, end / 3);
        free(bytes);
    }
}

struct node { struct node *left, *right; char *name; uint64_t key; };
static struct node *build(int depth, uint64_t *seed) {
    struct node *it = get(sizeof *it);
    it->key = next(seed);
    it->name = get(4 + it->key % 28);
    it->left = depth ? build(depth - 1, seed) : NULL;
    it->right = depth ? build(depth - 1, seed) : NULL;
    return it;
}
static uint64_t drop(struct node *it) {
    if (!it)
        return 0;
    uint64_t sum = it->key + drop(it->left) + drop(it->right);
    free(it->name), free(it);
    return sum;
}
static void tree(void) {
    uint64_t seed = 5, sum = 0;
    for (int i = 0; i < 12000; i++)
        sum += drop(build(8, &seed));
    for (int i = 0; i < 14; i++)
        sum += drop(build(17, &seed));
    printf("%llu\n", (unsigned long long)sum);
}

static void slabs(void) {
    enum { N = 30000 };
    static void *kept[N];
    for (int i = 0; i < 150; i++) {
        for (int n = 0; n < N; n++)
            kept[n] = get(1024);
        for (int n = 0; n < N; n++)
            free(kept[n]);
    }
}

static int forever(void (*run)(void)) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (;;) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        run();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        if (printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec) < 0)
            return 0;
    }
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"larson", larson}, {"scratch", scratch}, {"thrash", thrash}, {"xmalloc", xmalloc},
        {"mstress", mstress}, {"simple", simple}, {"thread", thread}, {"random", random_sizes},
        {"large", large}, {"grow", grow}, {"tree", tree}, {"buffer", buffer},
        {"slabs", slabs},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc >= 2 && strcmp(argv[1], all[i].name) == 0)
            return argc == 3 ? forever(all[i].run) : (all[i].run(), 0);
    return 2;
}
