/* Threads: argv[1] of them in all, argv[2] or 50 at a time, pass stamped objects on and end with some of theirs
 * in others' hands. */
#include "check.h"
#include <pthread.h>

enum { SLOTS = 4096, MOST = 3000 };
static void *shared[SLOTS];

static size_t mix(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33);
}

static void fill(unsigned char *p, size_t size) {
    size_t *head = (size_t *)p;
    head[0] = size;
    memset(p + sizeof(size_t), (int)(size * 7), size - sizeof(size_t));
}

static void verify(void *object) {
    unsigned char *p = object;
    size_t size = *(size_t *)p;
    for (size_t at = sizeof(size_t); at < size; at++)
        CHECK(p[at] == (unsigned char)(size * 7));
    free(p);
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < 400; i++) {
        /* All threads are there before one is done. */
        if (i == 1)
            usleep(100);
        size_t size = sizeof(size_t) + mix(&state) % (i % 50 ? 500 : 40000);
        unsigned char *p = i % 3 ? malloc(size) : calloc(1, size);
        CHECK(p);
        fill(p, size);
        if (i % 7 == 0) {
            size_t next = sizeof(size_t) + mix(&state) % 3000;
            p = realloc(p, next);
            CHECK(p && *(size_t *)p == size);
            fill(p, next);
        }
        void *other = __atomic_exchange_n(&shared[mix(&state) % SLOTS], p, __ATOMIC_ACQ_REL);
        if (other)
            verify(other);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int all = argc > 1 ? atoi(argv[1]) : 1000;
    int at_once = argc > 2 ? atoi(argv[2]) : 50;
    static pthread_t ids[MOST];
    CHECK(at_once <= MOST);
    for (int done = 0; done < all;) {
        int n = all - done < at_once ? all - done : at_once;
        for (int i = 0; i < n; i++)
            CHECK(pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(done + i + 1)) == 0);
        for (int i = 0; i < n; i++)
            pthread_join(ids[i], NULL);
        done += n;
    }
    for (int i = 0; i < SLOTS; i++)
        if (shared[i])
            verify(shared[i]);
    puts("all right");
    return 0;
}
