/*
 * The terminal of `marey top`. Signals that end or stop us are blocked and read from a descriptor, in the same place
 * that waits for keys, so that nothing is interrupted halfway. Only crashes have a handler, which is async-signal-safe.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "lib/terminal.h"

/* Alternate screen, no cursor, no line wrap; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct {
    struct termios before;
    int signals; /* a signalfd */
    sigset_t mask_before;
    volatile sig_atomic_t is_taken;
    int signal;
} terminal = {.signals = -1};

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static void put(const char *text, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return; /* the terminal is gone */
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* Async-signal-safe. */
static void give(void)
{
    if (!terminal.is_taken)
        return;
    terminal.is_taken = 0;
    put(LEAVE, sizeof LEAVE - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

static bool take(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &terminal.before) != 0)
        return false;
    raw = terminal.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ctrl-C and ctrl-Z stay signals */
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
        return false;
    terminal.is_taken = 1;
    put(ENTER, sizeof ENTER - 1);
    return true;
}

/* SA_RESETHAND has restored the default: the process dies when this returns. */
static void crashed(int sig)
{
    give();
    raise(sig);
}

bool terminal_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

bool terminal_open(void)
{
    sigset_t taken;
    struct sigaction crash = {.sa_handler = crashed, .sa_flags = SA_RESETHAND};
    sigemptyset(&taken);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        sigaddset(&taken, ending[i]);
    sigaddset(&taken, SIGWINCH);
    sigaddset(&taken, SIGTSTP);
    sigaddset(&taken, SIGCONT);
    terminal.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal.signals < 0 || sigprocmask(SIG_BLOCK, &taken, &terminal.mask_before) != 0)
        return false;
    for (size_t i = 0; i < sizeof crashing / sizeof crashing[0]; i++) {
        struct sigaction now;
        /* If the library handles SIGBUS, it guards the files that it maps. */
        if (sigaction(crashing[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(crashing[i], &crash, NULL);
    }
    atexit(terminal_close);
    return take();
}

void terminal_close(void)
{
    give();
    if (terminal.signals < 0)
        return;
    close(terminal.signals);
    terminal.signals = -1;
    sigprocmask(SIG_SETMASK, &terminal.mask_before, NULL);
}

void terminal_size(uint32_t *columns, uint32_t *rows)
{
    struct winsize size;
    const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = is_known && size.ws_col > 0 ? size.ws_col : 80;
    *rows = is_known && size.ws_row > 0 ? size.ws_row : 24;
}

/* Each line clears the rest of its row, to avoid flicker. The last row has no newline, which would scroll. */
void terminal_show(const char *text, size_t len)
{
    uint32_t columns, rows, row = 0;
    const char *const end = text + len;
    terminal_size(&columns, &rows);
    put("\033[H", 3);
    while (text < end && row < rows) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *const line_end = newline != NULL ? newline : end;
        if (row++ > 0)
            put("\r\n", 2);
        put(text, (size_t)(line_end - text));
        put("\033[K", 3);
        text = newline != NULL ? newline + 1 : end;
    }
    put("\033[J", 3);
}

/* Restores the terminal while stopped, as a shell expects. */
static void sleep_until_continued(void)
{
    give();
    kill(getpid(), SIGSTOP);
    take();
}

/* Reads one pending signal; TERMINAL_NOTHING if there is none. */
static int take_signal(void)
{
    struct signalfd_siginfo info;
    if (read(terminal.signals, &info, sizeof info) != (ssize_t)sizeof info)
        return TERMINAL_NOTHING;
    const int sig = (int)info.ssi_signo;
    if (sig == SIGTSTP)
        sleep_until_continued();
    if (sig == SIGTSTP || sig == SIGWINCH || sig == SIGCONT)
        return TERMINAL_RESIZED;
    terminal.signal = sig;
    return TERMINAL_ENDED;
}

static int take_key(void)
{
    unsigned char bytes[32];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n <= 0)
        return TERMINAL_NOTHING;
    return bytes[0];
}

int terminal_wait(int timeout_ms)
{
    struct pollfd fds[] = {{.fd = terminal.signals, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    const int n = poll(fds, 2, timeout_ms);
    if (n <= 0)
        return TERMINAL_NOTHING;
    if ((fds[0].revents & POLLIN) != 0)
        return take_signal();
    if ((fds[1].revents & POLLIN) != 0)
        return take_key();
    return TERMINAL_ENDED; /* the other side has hung up */
}

int terminal_signal(void)
{
    return terminal.signal;
}
