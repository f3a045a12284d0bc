/* Allocations before main, in constructors, in the resolver of an ifunc, behind main, in handlers
 * of signals, and in a library that comes and goes. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

static int one(void) { return 1; }
static char *at_resolve;

/* Runs while the program is being relocated. */
static int (*resolve(void))(void) {
    at_resolve = malloc(1000);
    memset(at_resolve, 3, 1000);
    return one;
}
int chosen(void) __attribute__((ifunc("resolve")));

__attribute__((constructor(101))) static void first(void) {
    void *here = calloc(3, 1000);
    free(realloc(here, 10));
    setenv("SET_IN_A_CONSTRUCTOR", "yes", 1);
}

__attribute__((destructor)) static void last(void) {
    char *p = malloc(50);
    strcpy(p, "destructor");
    puts(p);
    free(p);
}

static void at_exit(void) {
    free(hidden(malloc(123456)));
    puts("atexit");
}

static volatile sig_atomic_t handled;
static void on_signal(int number) {
    (void)number;
    /* Nothing was interrupted inside of malloc: raise() is called from outside. */
    free(hidden(malloc(99)));
    handled++;
}

static pthread_key_t key;
static int destroyed;
/* Runs at the end of a thread, again and again, after the library's own destructor. */
static void on_thread_end(void *value) {
    char *p = value;
    CHECK(strcmp(p, "thread") == 0);
    free(p);
    for (int i = 0; i < 300; i++)
        free(hidden(malloc((size_t)i * 10)));
    destroyed++;
    if (destroyed % 4) {
        p = malloc(7);
        strcpy(p, "thread");
        pthread_setspecific(key, p);
    }
}

static void *thread(void *unused) {
    char *p = malloc(7);
    strcpy(p, "thread");
    pthread_setspecific(key, p);
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(chosen() == 1 && at_resolve && at_resolve[999] == 3);
    free(at_resolve);
    CHECK(strcmp(getenv("SET_IN_A_CONSTRUCTOR"), "yes") == 0);
    atexit(at_exit);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 100; i++)
        raise(SIGUSR1);
    CHECK(handled == 100);
    for (int i = 0; i < 5; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        CHECK(library);
        char *(*make)(const char *) = (char *(*)(const char *))dlsym(library, "make");
        int (*count)(void) = (int (*)(void))dlsym(library, "count");
        CHECK(make && count);
        char *made = make("from a library");
        CHECK(count() > 0);
        CHECK(dlclose(library) == 0);
        CHECK(strcmp(made, "from a library") == 0);
        free(made);
    }
    /* The preloaded library stays, whoever closes it. */
    void *self = dlopen("libslabcore_preload.so", RTLD_NOW | RTLD_NOLOAD);
    if (self) {
        dlclose(self);
        dlclose(self);
    }
    /* A second C library, with a heap of its own. */
    void *other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (other) {
        void *(*their_malloc)(size_t) = (void *(*)(size_t))dlsym(other, "malloc");
        size_t (*their_size)(void *) = (size_t(*)(void *))dlsym(other, "malloc_usable_size");
        char *theirs = their_malloc(100);
        CHECK(theirs && their_size(theirs) >= 100);
        strcpy(theirs, "foreign");
        char *ours = realloc(theirs, 5000);
        CHECK(ours && ours != theirs && strcmp(ours, "foreign") == 0);
        free(ours);
        CHECK(strcmp(theirs, "foreign") == 0);
        free(theirs);
        CHECK(strcmp(theirs, "foreign") == 0);
    }
    /* Neither on the stack nor in the data is there anything to be freed. */
    static char data[64] = "data";
    char stack[64] = "stack";
    free(hidden(data));
    free(hidden(stack));
    CHECK(strcmp(data, "data") == 0 && strcmp(stack, "stack") == 0);
    char *copy = realloc(hidden(data), 100000);
    CHECK(copy && strcmp(copy, "data") == 0);
    free(copy);
    CHECK(pthread_key_create(&key, on_thread_end) == 0);
    for (int i = 0; i < 10; i++) {
        pthread_t id;
        CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
        pthread_join(id, NULL);
    }
    CHECK(destroyed == 40);
    puts("main");
    return 0;
}
