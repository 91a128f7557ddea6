/* A program whose system calls are the same each time: a child, a thread, an interrupted sleep, an error, an exec.
 * cc -O1 -o traced traced.c -lpthread */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void on_alarm(int number) { (void)number; }

static void *in_thread(void *nothing) {
  char bytes[64];
  int file = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 20; i++) syscall(SYS_read, file, bytes, sizeof bytes);
  close(file);
  return nothing;
}

int main(int argc, char **argv) {
  (void)argv;
  int sink = open("/dev/null", O_WRONLY);
  if (argc > 1) {
    for (int i = 0; i < 5; i++) syscall(SYS_getpid);
    return 0;
  }
  for (int i = 0; i < 100; i++) {
    syscall(SYS_write, sink, ") = 5 <0.1>\n", 12);
    if (i % 10 == 9) syscall(SYS_getppid);
  }
  open("/nonexistent = 3", O_RDONLY);
  syscall(470, 1, 2, 3);
  signal(SIGALRM, on_alarm);
  struct itimerval soon = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &soon, 0);
  struct timespec long_enough = {0, 50000000};
  nanosleep(&long_enough, 0);
  pthread_t thread;
  pthread_create(&thread, 0, in_thread, 0);
  pthread_join(thread, 0);
  pid_t child = fork();
  if (child == 0) execl("/proc/self/exe", "again", "child", (char *)0);
  waitpid(child, 0, 0);
  return 0;
}
