/* What programs do to themselves: argv[1] says what. Each time the heap goes on, in threads and children too, and
 * each process has a segment of its own as long as it may have one. */
#include "check.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void *work(void *seed) {
    void *kept[64] = {0};
    for (unsigned i = 0; i < 3000; i++) {
        unsigned at = i * 2654435761u % 64;
        size_t size = (i * 7919u + (unsigned)(uintptr_t)seed) % (i % 50 ? 1900 : 40000) + 1;
        free(kept[at]);
        kept[at] = malloc(size);
        if (kept[at])
            memset(kept[at], 1, size);
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return NULL;
}

static void say(const char *text) {
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Ends by exit, so that what is to be done at the end is done. */
static void in_child(void (*then)(void)) {
    pid_t id = fork();
    CHECK(id >= 0);
    if (id == 0) {
        work((void *)1);
        if (then)
            then();
        exit(0);
    }
    int status;
    CHECK(waitpid(id, &status, 0) == id);
    if (status)
        dprintf(2, "a child ended with %#x\n", status);
    CHECK(status == 0);
}

/* 1 if this process has mapped a segment that says that it is its own. */
static int has_segment(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    char line[1024];
    int own = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (!strstr(line, "rw-s") || !strstr(line, "slabcore") && !strstr(line, "/dev/zero"))
            continue;
        CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
        if (end - start == 1 << 20 && memcmp((void *)start, "slabcore", 8) == 0)
            own |= *(uint64_t *)(start + 1024) == (uint64_t)getpid();
    }
    fclose(maps);
    return own;
}

/* A child makes its own when what is at hand does not suffice. */
static void must_have_segment(void) {
    void *kept[3000];
    for (int i = 0; i < 3000; i++)
        kept[i] = malloc(300);
    for (int i = 0; i < 3000; i++)
        free(kept[i]);
    CHECK(has_segment());
}

static void grandchild(void) {
    must_have_segment();
    in_child(must_have_segment);
}

/* Children of a process with threads, up to 20 at a time. */
static volatile int stop;
static void *busy(void *seed) {
    while (!stop)
        work(seed);
    return NULL;
}

static void reap(void) {
    int status;
    CHECK(wait(&status) > 0 && status == 0);
}

static void storm(int forks) {
    pthread_t ids[3];
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&ids[i], NULL, busy, (void *)i) == 0);
    int running = 0;
    for (int i = 0; i < forks; i++) {
        pid_t id = fork();
        CHECK(id >= 0);
        if (id == 0) {
            alarm(60);
            /* Some end at once, some become another program, some work with a thread. */
            if (i % 4 == 1)
                execl("/bin/true", "true", (char *)NULL);
            if (i % 4 == 2) {
                pthread_t other;
                CHECK(pthread_create(&other, NULL, work, (void *)3) == 0);
                work((void *)5);
                pthread_join(other, NULL);
                must_have_segment();
                exit(0);
            }
            if (i % 4 == 3)
                work((void *)7);
            _exit(0);
        }
        if (++running == 20) {
            reap();
            running--;
        }
    }
    while (running--)
        reap();
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
}

static void become_daemon(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    int out = dup2(ends[1], 900);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            CHECK(chdir("/") == 0);
            for (int file = 0; file < 1100; file++)
                if (file != out)
                    close(file);
            CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
            work((void *)2);
            must_have_segment();
            in_child(grandchild);
            CHECK(write(out, "y", 1) == 1);
            exit(0);
        }
        _exit(0);
    }
    close(ends[1]);
    close(out);
    char yes = 0;
    CHECK(wait(NULL) > 0 && read(ends[0], &yes, 1) == 1 && yes == 'y');
}

static void limit(int what, rlim_t most) {
    struct rlimit of = {most, most};
    CHECK(setrlimit(what, &of) == 0);
}

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif
#define CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)
#define ARRIVES                                                                          \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),             \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static void install(struct sock_filter *filter, size_t n) {
    struct sock_fprog program = {(unsigned short)n, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* From here on what a program without files and an allocator need; anything else kills. */
static void allow_little(void) {
    enum { answer = SECCOMP_RET_ALLOW };
    struct sock_filter filter[] = {
        ARRIVES, CALL(mmap), CALL(munmap), CALL(mprotect), CALL(madvise), CALL(brk), CALL(read), CALL(write),
        CALL(exit), CALL(exit_group), CALL(futex), CALL(clone), CALL(clone3), CALL(wait4), CALL(getpid), CALL(gettid),
        CALL(rt_sigprocmask), CALL(rt_sigaction), CALL(rt_sigreturn), CALL(set_robust_list), CALL(rseq),
        CALL(clock_nanosleep), CALL(nanosleep), CALL(sched_yield), CALL(set_tid_address), CALL(clock_gettime),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    install(filter, sizeof filter / sizeof *filter);
}

/* What a new segment in a file would take; the loader needs none of it. */
static void forbid_files_in_memory(void) {
    enum { answer = SECCOMP_RET_KILL_PROCESS };
    struct sock_filter filter[] = {
        ARRIVES, CALL(memfd_create), CALL(ftruncate), CALL(fallocate), CALL(fchmod), CALL(fcntl), CALL(readlinkat),
        CALL(prctl), CALL(seccomp),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter);
}

static void end_at_once(void) {
    _exit(0);
}

static void sandboxed_child(void) {
    allow_little();
    work((void *)4);
    in_child(NULL);
    in_child(end_at_once);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    alarm(300);
    if (!strcmp(what, "storm")) {
        storm(number);
    } else if (!strcmp(what, "closes")) {
        CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
        work(NULL);
        grandchild();
    } else if (!strcmp(what, "daemon")) {
        become_daemon();
    } else if (!strcmp(what, "chroot")) {
        must_have_segment();
        CHECK(chroot(argv[2]) == 0 && chdir("/") == 0);
        work(NULL);
        in_child(NULL);
    } else if (!strcmp(what, "drops")) {
        CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
        grandchild();
    } else if (!strcmp(what, "files")) {
        limit(RLIMIT_NOFILE, 3);
        work(NULL);
        in_child(NULL);
    } else if (!strcmp(what, "length")) {
        limit(RLIMIT_FSIZE, 0);
        grandchild();
        must_have_segment();
    } else if (!strcmp(what, "memory")) {
        struct rlimit of;
        CHECK(getrlimit(RLIMIT_AS, &of) == 0);
        for (rlim_t most = 200 << 20; most >= 1 << 20; most /= 2) {
            limit(RLIMIT_AS, most);
            work(NULL);
            in_child(NULL);
        }
    } else if (!strcmp(what, "sandbox")) {
        in_child(sandboxed_child);
        sandboxed_child();
        say("all right\n");
        exit(0);
    } else if (!strcmp(what, "sandboxed-start")) {
        forbid_files_in_memory();
        execl("/proc/self/exe", argv[0], "segments", (char *)NULL);
        CHECK(0);
    } else if (!strcmp(what, "segments")) {
        grandchild();
        must_have_segment();
    } else {
        CHECK(!*what);
    }
    say("all right\n");
    return 0;
}
