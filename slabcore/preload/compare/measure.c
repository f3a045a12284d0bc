/* Runs a command with a library preloaded ("-": none) and writes its seconds, its seconds of processor time,
 * and the KiB that its largest process had at most: `measure LIBRARY COMMAND...`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    double begun = now();
    pid_t id = fork();
    if (id == 0) {
        if (strcmp(argv[1], "-") != 0)
            setenv("LD_PRELOAD", argv[1], 1);
        dup2(2, 1);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    struct rusage used;
    wait4(id, &status, 0, &used);
    double processor = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("%.4f %.4f %ld\n", now() - begun, processor, used.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
