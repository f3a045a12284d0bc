/* What the programs of these tests share: a check that tells where it failed. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)

/* Keeps the compiler from knowing what an allocation is. */
static void *hidden(void *p) {
    void *volatile q = p;
    return q;
}
