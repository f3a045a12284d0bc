/* Every function, with the values and errors that glibc 2.36 gives (aligned_alloc: 2.38). */
#include "check.h"
#include <malloc.h>
#include <stdalign.h>
#include <stddef.h>

void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);

static int aligned_to(void *p, size_t align) { return ((uintptr_t)p & (align - 1)) == 0; }

/* Debugging tells the bytes that were asked for. */
static int usable(void *p, size_t least) { return malloc_usable_size(p) >= least; }

static void sizes(void) {
    enum { N = 3000 };
    static unsigned char *kept[N];
    for (size_t i = 0; i < N; i++) {
        size_t size = i < 2000 ? i : (i - 2000) * 97;
        kept[i] = hidden(malloc(size));
        CHECK(kept[i] && usable(kept[i], size));
        CHECK(aligned_to(kept[i], size > 8 ? 16 : 8));
        memset(kept[i], (int)(i % 251), malloc_usable_size(kept[i]));
    }
    for (size_t i = 0; i < N; i++) {
        size_t size = malloc_usable_size(kept[i]);
        for (size_t at = 0; at < size; at++)
            CHECK(kept[i][at] == i % 251);
        free(kept[i]);
    }
    void *a = hidden(malloc(0)), *b = hidden(malloc(0));
    CHECK(a && b && a != b);
    free(a);
    free(b);
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
}

static void too_much(void) {
    void *volatile p;
#define REFUSED(call)                       \
    do {                                    \
        errno = 0;                          \
        p = (call);                         \
        CHECK(p == NULL && errno == ENOMEM); \
    } while (0)
    size_t most = hidden(NULL) ? 0 : PTRDIFF_MAX;
    REFUSED(malloc(most + 1));
    REFUSED(malloc(SIZE_MAX));
    REFUSED(malloc(most));
    REFUSED(calloc(SIZE_MAX / 2, 3));
    REFUSED(calloc(SIZE_MAX, 1));
    REFUSED(calloc(SIZE_MAX / 16 + 1, 16));
    REFUSED(aligned_alloc(64, most));
    REFUSED(memalign(64, SIZE_MAX - 8));
    REFUSED(valloc(SIZE_MAX));
    REFUSED(pvalloc(SIZE_MAX));
    REFUSED(pvalloc(SIZE_MAX - 4096));
    char *old = hidden(malloc(10));
    strcpy(old, "still");
    REFUSED(realloc(old, most + 1));
    REFUSED(realloc(old, SIZE_MAX));
    REFUSED(reallocarray(old, SIZE_MAX / 2, 3));
    CHECK(strcmp(old, "still") == 0);
    free(old);
    void *q = &q;
    CHECK(posix_memalign(&q, 64, SIZE_MAX) == ENOMEM && q == &q);
    CHECK(posix_memalign(&q, 64, most - 63) == ENOMEM && q == &q);
}

static void alignments(void) {
    void *p = &p;
    errno = 7;
    CHECK(posix_memalign(&p, 0, 8) == EINVAL && p == &p);
    CHECK(posix_memalign(&p, 4, 8) == EINVAL);
    CHECK(posix_memalign(&p, 24, 8) == EINVAL);
    CHECK(posix_memalign(&p, SIZE_MAX, 8) == EINVAL && p == &p);
    CHECK(errno == 7);
    errno = 0;
    size_t odd = 3;
    p = aligned_alloc(odd, 8);
    CHECK(p == NULL && errno == EINVAL);
    errno = 0;
    p = aligned_alloc(odd - 3, 8);
    CHECK(p == NULL && errno == EINVAL);
    errno = 0;
    p = memalign(SIZE_MAX / 2 + 2, 8);
    CHECK(p == NULL && errno == EINVAL);
    for (size_t align = 1; align <= 8 << 20; align *= 2) {
        for (size_t size = 0; size < 300000; size = size * 3 + 1) {
            unsigned char *kept[4];
            kept[0] = align < sizeof(void *) ? malloc(size) : NULL;
            if (!kept[0])
                CHECK(posix_memalign((void **)&kept[0], align, size) == 0);
            kept[1] = aligned_alloc(align, size);
            kept[2] = memalign(align == 1 ? 1 : align - align / 4, size);
            kept[3] = memalign(align, size);
            for (int i = 0; i < 4; i++) {
                CHECK(kept[i] && usable(kept[i], size));
                CHECK(aligned_to(kept[i], i || align >= sizeof(void *) ? align : 1));
                memset(kept[i], i + 1, size);
            }
            for (int i = 0; i < 4; i++) {
                CHECK(size == 0 || (kept[i][0] == i + 1 && kept[i][size - 1] == i + 1));
                if (i == 1)
                    free_aligned_sized(kept[i], align, size);
                else
                    free(kept[i]);
            }
        }
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size < 3 * page; size += 511) {
        void *v = valloc(size), *w = pvalloc(size);
        CHECK(v && w && aligned_to(v, page) && aligned_to(w, page));
        size_t whole = size == 0 ? page : (size + page - 1) / page * page;
        CHECK(usable(v, size) && usable(w, whole));
        memset(w, 1, whole);
        free(v);
        free(w);
    }
}

static void zeroed(void) {
    for (size_t size = 1; size < 3 << 20; size = size * 2 + 3) {
        for (int round = 0; round < 3; round++) {
            unsigned char *p = hidden(calloc(size, 1)), *q = hidden(calloc(1, size));
            CHECK(p && q);
            for (size_t at = 0; at < size; at++)
                CHECK(p[at] == 0 && q[at] == 0);
            memset(p, 0xee, size);
            memset(q, 0xdd, size);
            free(p);
            free(q);
        }
    }
    void *p = hidden(calloc(0, 5)), *q = hidden(calloc(5, 0));
    CHECK(p && q && p != q);
    free(p);
    free(q);
}

static void resized(void) {
    /* Up and down through all sizes: the bytes come along. */
    size_t size = 1;
    unsigned char *p = hidden(malloc(size));
    p[0] = 0;
    for (int step = 0; step < 4000; step++) {
        size_t next = (size * 7 + (size_t)step * 131) % (step % 10 == 9 ? 900000 : 3000) + 1;
        unsigned char *q = hidden(step % 2 ? realloc(p, next) : reallocarray(p, next, 1));
        CHECK(q && usable(q, next) && aligned_to(q, next > 8 ? 16 : 8));
        for (size_t at = 0; at < (size < next ? size : next); at++)
            CHECK(q[at] == (unsigned char)(at * 31));
        for (size_t at = 0; at < next; at++)
            q[at] = (unsigned char)(at * 31);
        p = q, size = next;
    }
    CHECK(realloc(p, 0) == NULL);
    p = realloc(NULL, 0);
    CHECK(p);
    free_sized(p, 0);
    p = realloc(NULL, 100);
    CHECK(p && usable(p, 100));
    free(p);
    /* Two that grow side by side to many MiB, are cut, and grow again: neither gets into the other. */
    size_t *two[2] = {NULL, NULL};
    static const size_t ends[] = {3000000, 2000, 200000, 50000, 6000000};
    for (size_t n = 0, words = 0; n < sizeof ends / sizeof *ends; n++)
        do {
            size_t next = words * 9 / 8 + 20 < ends[n] ? words * 9 / 8 + 20 : ends[n];
            for (size_t i = 0; i < 2; i++) {
                two[i] = hidden(realloc(two[i], next * sizeof(size_t)));
                CHECK(two[i] && usable(two[i], next * sizeof(size_t)));
                for (size_t at = words; at < next; at++)
                    two[i][at] = at * 2 + i;
                if (next == ends[n])
                    for (size_t at = 0; at < next; at++)
                        CHECK(two[i][at] == at * 2 + i);
            }
            words = next;
        } while (words != ends[n]);
    free(two[0]);
    free(two[1]);
    /* Of an aligned object. */
    CHECK(posix_memalign((void **)&p, 4096, 5000) == 0);
    memset(p, 5, 5000);
    p = hidden(realloc(p, 200000));
    CHECK(p[0] == 5 && p[4999] == 5);
    free(p);
}

static void errno_is_left_alone(void) {
    enum { N = 5000 };
    static void *kept[N];
    for (int i = 0; i < N; i++)
        kept[i] = malloc((size_t)(i % 97) * 700);
    errno = 77;
    for (int i = 0; i < N; i++)
        free(kept[i]);
    CHECK(errno == 77);
    malloc_trim(0);
    CHECK(errno == 77);
}

int main(void) {
    sizes();
    too_much();
    alignments();
    zeroed();
    resized();
    errno_is_left_alone();
    puts("all right");
    return 0;
}
