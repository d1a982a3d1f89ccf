/* A disk that can fail: a library to preload, which stands between a process and its files below one folder.

   It notes what is done to them, in the order in which it is done (disk_note), or has the n-th call fail, be short, or end
   the process (disk_fail). Nothing below the folder is ever synced for real: the process is the only thing that dies.
   Shared memory of SQLite (-shm) is left alone: it is mapped, and means nothing once nobody has it open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAIL = 1, SHORT, DIE };
#define FILES 4096

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static char folder[4096];
static size_t folder_size;
static char *names[FILES];
static int notes = -1, mode, code, reads;
static long count, target;
static char hit[512];

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static const char *below(const char *path) {
    if (!folder_size || strncmp(path, folder, folder_size) || path[folder_size] != '/') return NULL;
    size_t size = strlen(path);
    if (size > 4 && !strcmp(path + size - 4, "-shm")) return NULL;
    return path + folder_size + 1;
}

static const char *of(int fd) { return fd >= 0 && fd < FILES ? names[fd] : NULL; }

static void put(const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    while (size) {
        ssize_t done = real(notes, data, size);
        if (done <= 0) _exit(99);
        data = (const char *)data + done, size -= done;
    }
}

static void note(char what, const char *path, uint64_t at, const void *data, uint64_t size) {
    if (notes < 0) return;
    uint32_t length = strlen(path);
    put(&what, 1), put(&length, 4), put(&at, 8), put(&size, 8), put(path, length);
    if (data) put(data, size);
}

/* Whether this call is the one: 0, or what to do instead of it. The lock is held. */
static int turn(const char *what, const char *path) {
    if (!mode || !strcmp(path, "acks") || ++count != target) return 0;
    snprintf(hit, sizeof hit, "%s %s", what, path);
    if (mode == DIE) _exit(77);
    return mode;
}

#define ENTER int was = errno; int own = pthread_mutex_lock(&lock); errno = was
#define LEAVE do { int now = errno; if (!own) pthread_mutex_unlock(&lock); errno = now; } while (0)
#define FAILED do { LEAVE; errno = code; return -1; } while (0)

void disk_note(const char *path, const char *file) {
    ENTER;
    snprintf(folder, sizeof folder, "%s", path), folder_size = strlen(folder);
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    notes = file ? real(file, O_CREAT | O_WRONLY | O_TRUNC, 0600) : -1;
    mode = 0;
    LEAVE;
}

void disk_fail(const char *path, long n, int how, int error, int also_reads) {
    ENTER;
    snprintf(folder, sizeof folder, "%s", path), folder_size = strlen(folder);
    notes = -1, mode = how, code = error, reads = also_reads, count = 0, target = n, hit[0] = 0;
    LEAVE;
}

long disk_rest(void) { notes = -1, mode = 0; return count; }
const char *disk_hit(void) { return hit; }

static int opened(const char *path, int flags, int given, const char *name, int (*real)(const char *, int, ...)) {
    const char *known = name;
    ENTER;
    struct stat there;
    int makes = known && (flags & O_CREAT) && stat(path, &there);
    if (known && (makes || reads) && turn(makes ? "create" : "open", known) == FAIL) FAILED;
    int fd = real(path, flags, given);
    if (fd >= 0 && fd < FILES) {
        free(names[fd]), names[fd] = known ? strdup(known) : NULL;
        if (known && makes) note('c', known, 0, NULL, 0);
        else if (known && (flags & O_TRUNC)) note('t', known, 0, NULL, 0);
    }
    LEAVE;
    return fd;
}

#define OPEN(symbol) \
    int symbol(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); \
        int given = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
        va_end(rest); \
        static int (*real)(const char *, int, ...); \
        if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #symbol); \
        const char *name = below(path); \
        if (!name && (!folder_size || strncmp(path, folder, folder_size))) { \
            int fd = real(path, flags, given); \
            if (fd >= 0 && fd < FILES && names[fd]) { free(names[fd]), names[fd] = NULL; } \
            return fd; \
        } \
        return opened(path, flags, given, name, real); \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    REAL(int, "close", int);
    if (of(fd)) { ENTER; free(names[fd]), names[fd] = NULL; LEAVE; }
    return real(fd);
}

static int how_much(const char *what, const char *name, size_t *size) {
    int told = turn(what, name);
    if (told == SHORT && *size > 1) { *size /= 2; return 0; }
    return told == FAIL || told == SHORT;
}

#define WRITE(symbol, real_call, where, ...) \
    ssize_t symbol(int fd, const void *data, size_t size __VA_ARGS__) { \
        static ssize_t (*real)(int, const void *, size_t __VA_ARGS__); \
        if (!real) real = (ssize_t(*)(int, const void *, size_t __VA_ARGS__))dlsym(RTLD_NEXT, #symbol); \
        const char *name = of(fd); \
        if (!name) return real_call; \
        ENTER; \
        if (how_much("write", name, &size)) FAILED; \
        ssize_t done = real_call; \
        if (done > 0) note('w', name, where, data, done); \
        LEAVE; \
        return done; \
    }
WRITE(write, real(fd, data, size), (uint64_t)(lseek64(fd, 0, SEEK_CUR) - done))
WRITE(pwrite, real(fd, data, size, at), (uint64_t)at, , off_t at)
WRITE(pwrite64, real(fd, data, size, at), (uint64_t)at, , off64_t at)

#define READ(symbol, real_call, ...) \
    ssize_t symbol(int fd, void *data, size_t size __VA_ARGS__) { \
        static ssize_t (*real)(int, void *, size_t __VA_ARGS__); \
        if (!real) real = (ssize_t(*)(int, void *, size_t __VA_ARGS__))dlsym(RTLD_NEXT, #symbol); \
        const char *name = of(fd); \
        if (!name || !reads) return real_call; \
        ENTER; \
        if (how_much("read", name, &size)) FAILED; \
        LEAVE; \
        return real_call; \
    }
READ(read, real(fd, data, size))
READ(pread, real(fd, data, size, at), , off_t at)
READ(pread64, real(fd, data, size, at), , off64_t at)

#define SYNC(symbol) \
    int symbol(int fd) { \
        REAL(int, #symbol, int); \
        const char *name = of(fd); \
        if (!name) return real(fd); \
        ENTER; \
        if (turn("sync", name)) FAILED; \
        note('s', name, 0, NULL, 0); \
        LEAVE; \
        return 0; \
    }
SYNC(fsync)
SYNC(fdatasync)

#define CUT(symbol, type) \
    int symbol(int fd, type size) { \
        REAL(int, #symbol, int, type); \
        const char *name = of(fd); \
        if (!name) return real(fd, size); \
        ENTER; \
        if (turn("truncate", name)) FAILED; \
        int done = real(fd, size); \
        if (!done) note('t', name, size, NULL, 0); \
        LEAVE; \
        return done; \
    }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

#define CUT_NAMED(symbol, type) \
    int symbol(const char *path, type size) { \
        REAL(int, #symbol, const char *, type); \
        const char *name = below(path); \
        if (!name) return real(path, size); \
        ENTER; \
        if (turn("truncate", name)) FAILED; \
        int done = real(path, size); \
        if (!done) note('t', name, size, NULL, 0); \
        LEAVE; \
        return done; \
    }
CUT_NAMED(truncate, off_t)
CUT_NAMED(truncate64, off64_t)

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    const char *name = below(path);
    if (!name) return real(path);
    ENTER;
    if (turn("unlink", name)) FAILED;
    int done = real(path);
    if (!done) note('u', name, 0, NULL, 0);
    LEAVE;
    return done;
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    const char *name = below(from), *other = below(to);
    if (!name || !other) return real(from, to);
    ENTER;
    if (turn("rename", name)) FAILED;
    int done = real(from, to);
    if (!done) {
        note('r', name, 0, other, strlen(other));
        for (int fd = 0; fd < FILES; fd++)
            if (names[fd] && !strcmp(names[fd], name)) { free(names[fd]); names[fd] = strdup(other); }
    }
    LEAVE;
    return done;
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    const char *name = below(from), *other = below(to);
    if (!name || !other) return real(from, to);
    ENTER;
    if (turn("link", name)) FAILED;
    int done = real(from, to);
    if (!done) note('l', name, 0, other, strlen(other));
    LEAVE;
    return done;
}

int mkdir(const char *path, mode_t given) {
    REAL(int, "mkdir", const char *, mode_t);
    const char *name = below(path);
    if (!name) return real(path, given);
    ENTER;
    if (turn("mkdir", name)) FAILED;
    int done = real(path, given);
    if (!done) note('m', name, 0, NULL, 0);
    LEAVE;
    return done;
}
