/* One planted fault, by name. The functions are exported, so that reports can name them. */
#include "check.h"

__attribute__((noinline)) char *allocating(size_t size) {
    char *p = hidden(malloc(size));
    CHECK(p);
    return p;
}

__attribute__((noinline)) void freeing(void *p) {
    free(hidden(p));
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void freeing_again(void *p) {
    free(hidden(p));
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void *resizing(void *p, size_t size) {
    void *q = realloc(hidden(p), size);
    __asm__ volatile("" ::: "memory");
    return q;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *fault = argv[1];
    static char data[64];
    volatile char *p = allocating(40);
    if (strcmp(fault, "none") == 0) {
        freeing((void *)p);
    } else if (strcmp(fault, "overflow") == 0) {
        /* All of the class. */
        p = allocating(48);
        p[48] = 'x';
        freeing((void *)p);
    } else if (strcmp(fault, "underflow") == 0) {
        p[-1] = 'x';
        freeing((void *)p);
    } else if (strcmp(fault, "overflow-slack") == 0) {
        /* In the 48 bytes of the class, but not in those asked for. */
        p[44] = 'x';
        freeing((void *)p);
    } else if (strcmp(fault, "overflow-realloc") == 0) {
        p[40] = 'x';
        freeing(resizing((void *)p, 44));
    } else if (strcmp(fault, "after-free") == 0) {
        freeing((void *)p);
        p[8] = 'x';
        for (int i = 0; i < 200; i++)
            hidden(malloc(40));
    } else if (strcmp(fault, "double-free") == 0) {
        freeing((void *)p);
        freeing_again((void *)p);
    } else if (strcmp(fault, "interior") == 0) {
        freeing((void *)(p + 16));
    } else if (strcmp(fault, "foreign") == 0) {
        freeing(data);
    } else if (strcmp(fault, "large-interior") == 0) {
        p = allocating(1 << 20);
        freeing((void *)(p + 4096));
    } else if (strcmp(fault, "realloc-interior") == 0) {
        CHECK(resizing((void *)(p + 16), 100));
    } else if (strcmp(fault, "realloc-freed") == 0) {
        freeing((void *)p);
        CHECK(resizing((void *)p, 100));
    } else if (strcmp(fault, "realloc-foreign") == 0) {
        CHECK(resizing(data, 100));
    } else {
        return 2;
    }
    /* The program goes on, and nothing else was damaged. */
    for (int i = 0; i < 1000; i++)
        free(hidden(malloc((size_t)i)));
    puts("still here");
    return 0;
}
