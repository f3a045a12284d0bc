/* Forks while other threads allocate: each child allocates, frees what its parent had, and forks. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;

static void *busy(void *unused) {
    void *kept[64] = {0};
    for (unsigned i = 0; !stop; i++) {
        unsigned at = i * 2654435761u % 64;
        free(kept[at]);
        kept[at] = malloc(i % 1900 + 1);
        memset(kept[at], 1, i % 1900 + 1);
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return unused;
}

static void child(void **inherited, int depth) {
    for (int i = 0; i < 200; i++) {
        free(inherited[i]);
        inherited[i] = malloc((size_t)i * 37 + 1);
        CHECK(inherited[i]);
        memset(inherited[i], depth, (size_t)i * 37 + 1);
    }
    free(malloc(1 << 20));
    if (depth == 0) {
        pid_t id = fork();
        CHECK(id >= 0);
        if (id == 0)
            child(inherited, 1);
        int status;
        CHECK(waitpid(id, &status, 0) == id && status == 0);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 100;
    pthread_t ids[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&ids[i], NULL, busy, NULL) == 0);
    void *inherited[200];
    for (int i = 0; i < 200; i++)
        inherited[i] = calloc(1, (size_t)i * 11 + 1);
    for (int i = 0; i < forks; i++) {
        alarm(60);
        pid_t id = fork();
        CHECK(id >= 0);
        if (id == 0) {
            alarm(30);
            child(inherited, 0);
        }
        int status;
        CHECK(waitpid(id, &status, 0) == id);
        CHECK(status == 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
    puts("all right");
    return 0;
}
