/* Delays system calls of one program, to show what depends on which of two things comes first. Loaded by run.sh.
 *
 * LAG_PROG names the program (a part of its name is enough), LAG_CLOSE, LAG_ACCEPT, LAG_WRITE, LAG_READ, LAG_CONNECT and
 * LAG_EPOLL the milliseconds by which calls on sockets are held back. With LAG_RANDOM every third call is, by up to so much. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static long on_close, on_accept, on_write, on_read, on_connect, on_epoll;
static int active, at_random;
static __thread unsigned seed;

static long milliseconds(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void settings(void)
{
    const char *program = getenv("LAG_PROG");
    active = program && strstr(program_invocation_short_name, program);
    at_random = getenv("LAG_RANDOM") != NULL;
    on_close = milliseconds("LAG_CLOSE");
    on_accept = milliseconds("LAG_ACCEPT");
    on_write = milliseconds("LAG_WRITE");
    on_read = milliseconds("LAG_READ");
    on_connect = milliseconds("LAG_CONNECT");
    on_epoll = milliseconds("LAG_EPOLL");
}

static void lag(long limit)
{
    struct timespec time;
    long micros = limit * 1000;
    int kept = errno;

    if (!active || limit <= 0)
        return;
    if (at_random) {
        if (!seed) {
            clock_gettime(CLOCK_MONOTONIC, &time);
            seed = (unsigned)(time.tv_nsec ^ getpid());
        }
        if (rand_r(&seed) % 3)
            return;
        micros = rand_r(&seed) % micros;
    }
    time.tv_sec = micros / 1000000;
    time.tv_nsec = micros % 1000000 * 1000;
    nanosleep(&time, NULL);
    errno = kept;
}

static int is_socket(int fd)
{
    int type, kept = errno;
    socklen_t length = sizeof type;
    int found = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
    errno = kept;
    return found;
}

#define BEFORE(result, name, limit, only_sockets, parameters, arguments) \
    result name parameters                                               \
    {                                                                    \
        static result(*real) parameters;                                 \
        if (!real)                                                       \
            real = (result(*) parameters)dlsym(RTLD_NEXT, #name);        \
        if (active && limit && (!only_sockets || is_socket(fd)))         \
            lag(limit);                                                  \
        return real arguments;                                           \
    }

#define AFTER(name, limit, parameters, arguments)                        \
    int name parameters                                                  \
    {                                                                    \
        static int(*real) parameters;                                    \
        if (!real)                                                       \
            real = (int(*) parameters)dlsym(RTLD_NEXT, #name);           \
        int got = real arguments;                                        \
        if (got >= 0)                                                    \
            lag(limit);                                                  \
        return got;                                                      \
    }

BEFORE(int, close, on_close, 1, (int fd), (fd))
BEFORE(int, shutdown, on_close, 0, (int fd, int how), (fd, how))
BEFORE(int, connect, on_connect, 0, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))
BEFORE(ssize_t, write, on_write, 1, (int fd, const void *bytes, size_t length), (fd, bytes, length))
BEFORE(ssize_t, writev, on_write, 1, (int fd, const struct iovec *parts, int count), (fd, parts, count))
BEFORE(ssize_t, send, on_write, 0, (int fd, const void *bytes, size_t length, int flags), (fd, bytes, length, flags))
BEFORE(ssize_t, read, on_read, 1, (int fd, void *bytes, size_t length), (fd, bytes, length))
BEFORE(ssize_t, recv, on_read, 0, (int fd, void *bytes, size_t length, int flags), (fd, bytes, length, flags))
AFTER(accept, on_accept, (int fd, struct sockaddr *from, socklen_t *length), (fd, from, length))
AFTER(accept4, on_accept, (int fd, struct sockaddr *from, socklen_t *length, int flags), (fd, from, length, flags))
AFTER(epoll_wait, on_epoll, (int fd, struct epoll_event *events, int count, int timeout), (fd, events, count, timeout))
