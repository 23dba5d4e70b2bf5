/* What generated bindings need of a C library. An instance of a tool lives for
 * one call, so memory is only ever handed out. */
#include "stdlib.h"
#include "string.h"

extern unsigned char __heap_base;
static size_t next;

void *malloc(size_t size) {
    if (next == 0)
        next = (size_t)&__heap_base;
    size_t block = (next + 15) & ~(size_t)15;
    /* The size stands before the block, for realloc. */
    size_t end = block + 16 + size;
    size_t pages = __builtin_wasm_memory_size(0);
    if (end > pages * 65536 &&
        __builtin_wasm_memory_grow(0, (end - pages * 65536 + 65535) / 65536) == (size_t)-1)
        abort();
    *(size_t *)block = size;
    next = end;
    return (void *)(block + 16);
}

void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }

void *realloc(void *old, size_t size) {
    void *made = malloc(size);
    if (old) {
        size_t had = *(size_t *)((size_t)old - 16);
        memcpy(made, old, had < size ? had : size);
    }
    return made;
}

void free(void *pointer) { (void)pointer; }
_Noreturn void abort(void) { __builtin_trap(); }

void *memcpy(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *memmove(void *to, const void *from, size_t size) {
    volatile unsigned char *out = to;
    const unsigned char *in = from;
    if ((size_t)to < (size_t)from)
        for (size_t i = 0; i < size; i++) out[i] = in[i];
    else
        for (size_t i = size; i > 0; i--) out[i - 1] = in[i - 1];
    return to;
}
void *memset(void *to, int byte, size_t size) {
    volatile unsigned char *out = to;
    for (size_t i = 0; i < size; i++) out[i] = (unsigned char)byte;
    return to;
}
int memcmp(const void *left, const void *right, size_t size) {
    const unsigned char *a = left, *b = right;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i]) return a[i] - b[i];
    return 0;
}
size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}
