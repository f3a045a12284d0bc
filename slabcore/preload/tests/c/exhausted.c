/* Whether there is memory at all: argv[1] is "none" or "some". */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int some = strcmp(argv[1], "some") == 0;
    errno = 0;
    void *p = hidden(malloc(10)), *q = hidden(calloc(1, 100000)), *r = hidden(realloc(NULL, 50));
    CHECK(!p == !some && !q == !some && !r == !some);
    CHECK(some || errno == ENOMEM);
    CHECK(posix_memalign(&p, 64, 100) == (some ? 0 : ENOMEM));
    free(q);
    free(r);
    puts("all right");
    return 0;
}
