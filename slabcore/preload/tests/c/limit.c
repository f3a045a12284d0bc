/* Allocates until there is no more, which must be before 64 MiB, and goes on. */
#include "check.h"

int main(void) {
    for (int round = 0; round < 3; round++) {
        for (size_t size = 16; size < 1 << 20; size *= 16) {
            void *first = NULL;
            size_t all = 0;
            for (;;) {
                errno = 0;
                void **p = malloc(size);
                if (!p)
                    break;
                p[0] = first;
                first = p;
                all += size;
                CHECK(all < 64 << 20);
            }
            CHECK(errno == ENOMEM && all > 8 << 20);
            while (first) {
                void *next = *(void **)first;
                free(first);
                first = next;
            }
        }
    }
    puts("all right");
    return 0;
}
