/* A library that allocates when it comes and frees when it goes. */
#include <stdlib.h>
#include <string.h>

static char *kept[100];

__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 100; i++)
        kept[i] = strdup("kept by a library");
}

__attribute__((destructor)) static void end(void) {
    for (int i = 0; i < 100; i++)
        free(kept[i]);
}

int count(void) { return kept[99] != NULL; }
char *make(const char *text) { return strdup(text); }
