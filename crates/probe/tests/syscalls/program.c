/* Makes known sequences of system calls. Each round waits for a byte on standard input first. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void await(void) {
    char byte;
    read(0, &byte, 1);
}

static char **arguments;

/* 500 times getppid and write, every tenth time a close that fails. */
static void plain(void) {
    int null = 3;
    for (int i = 0; i < 500; i++) {
        syscall(SYS_getppid);
        write(null, "0123456789", 10);
        if (i % 10 == 0) close(-1);
    }
}

static atomic_int turn;

/* 60 calls of each of two threads, one after the other. */
static void take_turns(int mine, long number) {
    for (int i = 0; i < 60; i++) {
        while (atomic_load(&turn) != mine) continue;
        syscall(number);
        atomic_store(&turn, 1 - mine);
    }
}

static void *other(void *unused) {
    take_turns(1, SYS_getgid);
    return unused;
}

static void threads(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    take_turns(0, SYS_getuid);
    pthread_join(thread, NULL);
}

/* A child that becomes the program of the next argument, then a change of the own name. */
static void names(void) {
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_getuid);
        execl(arguments[2], arguments[2], "leave", NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    syscall(SYS_getgid);
    prctl(PR_SET_NAME, "renamed \\");
    syscall(SYS_getgid);
    prctl(PR_SET_NAME, "program");
    syscall(SYS_getgid);
}

static void *become(void *unused) {
    syscall(SYS_getuid);
    execl(arguments[2], arguments[2], "leave", NULL);
    return unused;
}

/* A thread other than the first becomes another program. */
static void renumber(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, become, NULL);
    for (;;) pause();
}

/* 2000 sleeps, eight short and eight long in turn, and 2000 reads of 256 KiB: what they take is known. */
static void times(void) {
    static char bytes[256 << 10];
    prctl(PR_SET_TIMERSLACK, 1);
    int zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < 2000; i++) {
        struct timespec span = {0, i & 8 ? 400000 : 100000};
        syscall(SYS_nanosleep, &span, NULL);
    }
    for (int i = 0; i < 2000; i++) read(zero, bytes, sizeof bytes);
}

/* 4000 of five calls in no order: most of 625 transitions. */
static void mix(unsigned seed) {
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1664525 + 1013904223;
        switch ((seed >> 16) % 5) {
        case 0: syscall(SYS_getppid); break;
        case 1: syscall(SYS_getuid); break;
        case 2: syscall(SYS_getgid); break;
        case 3: close(-1); break;
        default: write(3, "0123456789", 1 + (seed >> 8) % 10);
        }
    }
}

static void *mix_under_two_names(void *seed) {
    mix((unsigned)(long)seed);
    prctl(PR_SET_NAME, "mixed");
    mix((unsigned)(long)seed + 1);
    return NULL;
}

/* Six threads and two children, which become the program of the next argument. */
static void crowd(void) {
    pthread_t threads[6];
    for (long i = 0; i < 2; i++) {
        if (fork() == 0) {
            mix(100 + i);
            execl(arguments[2], arguments[2], "mix", NULL);
            _exit(1);
        }
    }
    for (long i = 0; i < 6; i++) pthread_create(&threads[i], NULL, mix_under_two_names, (void *)(10 * i));
    for (long i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    while (wait(NULL) > 0) continue;
}

int main(int count, char **given) {
    arguments = given;
    const char *what = given[1];
    if (!strcmp(what, "leave")) {
        syscall(SYS_getegid);
        _exit(0);
    }
    if (!strcmp(what, "mix")) {
        mix(1000);
        _exit(0);
    }
    open("/dev/null", O_WRONLY);
    await();
    if (!strcmp(what, "plain")) plain();
    if (!strcmp(what, "threads")) threads();
    if (!strcmp(what, "names")) names();
    if (!strcmp(what, "renumber")) renumber();
    if (!strcmp(what, "times")) times();
    if (!strcmp(what, "rounds"))
        for (int round = 0; round < 3; round++) {
            plain();
            await();
        }
    if (!strcmp(what, "crowds"))
        for (int round = 0; round < 3; round++) {
            crowd();
            await();
        }
    _exit(count == 0);
}
