/* Keys on a terminal: what they do to a training, and that the terminal's settings come back whatever ends
 * it. Each test has a terminal of its own with a small shell in it, which runs the training in front. */
#include "environment/environment_test.h"
#include "trainer/signals.h"
#include "trainer/trainer_struct.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#if defined(SIGMA_ADDRESS_SANITIZER) || defined(SIGMA_THREAD_SANITIZER)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* What the processes know of each other. */
typedef struct shared_state {
    atomic_llong iteration;
    atomic_bool running, paused, ended;
    atomic_bool job_stands, go_on; /* suspended; the shell is to bring it to the front again */
    atomic_int caught;             /* by the program's own handler, or by the training */
    atomic_int wait_status, job, run_status;
} shared_state;

typedef enum way_out { STOPS, HANGS, EXITS, FAILS, FAILS_AT_ONCE } way_out;

/* What the program does beside training. */
static struct {
    bool no_keys, catches, own_handler, in_background;
    way_out out;
} program;

static shared_state *shared;
static int master;
static pid_t shell;
static struct termios before;
static char screen[1 << 20];
static size_t screen_length;

/* --- the program --- */

static bool observe(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_PAUSE || progress->kind == SGM_PROGRESS_RESUME)
        atomic_store(&shared->paused, progress->kind == SGM_PROGRESS_PAUSE);
    atomic_store(&shared->iteration, progress->iteration);
    if (progress->kind == SGM_PROGRESS_ITERATION) {
        atomic_store(&shared->running, true);
        usleep(1000);
    }
    if (program.out == EXITS && progress->iteration == 20)
        exit(7);
    while (program.out == HANGS && progress->iteration == 20) {
        if (sgm__signals_came())
            atomic_store(&shared->caught, SIGINT);
        usleep(1000);
    }
    return true;
}

static void catch_signal(int number)
{
    atomic_store(&shared->caught, number);
}

static sgm_status break_down(void *self, sgm_hook_call *call)
{
    (void)self;
    return call->scale != SGM_START && call->iteration < 20
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the hook has had enough");
}

static void add_breaker(sgm_trainer *trainer, sgm_time_scale scale)
{
    static const sgm_hook_type breaker = {.api = SGM_HOOK_API, .name = "breaker", .invoke = break_down};
    sgm_trainer_add_hook(
        trainer, sgm_hook_create(&breaker, NULL, .when = sgm_every(1, scale), .failure = SGM_HOOK_STOP));
}

static int train(void)
{
    setenv("TERM", "xterm", 1);
    if (program.own_handler)
        signal(SIGTERM, catch_signal);
    sgm_env *env = sgm_env_create("keys", .handler = "reference");
    sgm_trainer *trainer = line_trainer(env, "line");
    sgm_trainer_on_progress(trainer, observe, NULL);
    if (program.out == FAILS || program.out == FAILS_AT_ONCE)
        add_breaker(trainer, program.out == FAILS ? SGM_ITERATION : SGM_START);
    sgm_env_add_monitor(env, program.no_keys ? sgm_terminal_monitor() : sgm_terminal_monitor(.keys = true));
    sgm_status status = sgm_env_run(env, .iterations = 1000000000, .catch_interrupt = program.catches);
    atomic_store(&shared->run_status, (int)status);
    atomic_store(&shared->ended, true);
    if (status != SGM_OK)
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_env_free(env);
    return status == SGM_OK ? 0 : 3;
}

/* --- the shell --- */

/* As a shell does for a job in front. Who started the tests may have had signals ignored, as nohup does with
 * SIGHUP, and scripts with SIGINT for what they start in the background. */
static void take_all_signals(void)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void run_shell(const char *terminal)
{
    setsid();
    int slave = open(terminal, O_RDWR);
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) != 0)
        _exit(99);
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    dup2(slave, STDERR_FILENO);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        atomic_store(&shared->job, getpid()); /* before anybody can see that it trains */
        setpgid(0, 0);
        if (!program.in_background)
            tcsetpgrp(STDIN_FILENO, getpgrp());
        take_all_signals();
        exit(train());
    }
    int status;
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        tcsetpgrp(STDIN_FILENO, getpgrp());
        atomic_store(&shared->job_stands, true);
        while (!atomic_load(&shared->go_on))
            usleep(1000);
        atomic_store(&shared->go_on, false);
        tcsetpgrp(STDIN_FILENO, job);
        atomic_store(&shared->job_stands, false);
        kill(-job, SIGCONT);
    }
    atomic_store(&shared->wait_status, status);
    _exit(0);
}

/* --- in front of the terminal --- */

static void read_screen(void)
{
    struct pollfd from = {.fd = master, .events = POLLIN};
    while (poll(&from, 1, 0) > 0 && (from.revents & POLLIN) != 0 && screen_length < sizeof screen - 1) {
        ssize_t got = read(master, screen + screen_length, sizeof screen - 1 - screen_length);
        if (got <= 0)
            return;
        screen_length += (size_t)got;
    }
}

#define MAXIMUM_WAITS 30000 /* a minute, on a busy machine */

/* Reads along, or the training would stand when the terminal is full. */
static void wait_a_moment(void)
{
    read_screen();
    usleep(2000);
}

/* The condition is not asked once more after the time is over: by then all is ended. */
#define WAIT_FOR(condition)                                                                                  \
    do {                                                                                                     \
        bool is_so = (condition);                                                                            \
        for (int waited_for = 0; waited_for < MAXIMUM_WAITS && !is_so; waited_for++) {                       \
            wait_a_moment();                                                                                 \
            is_so = (condition);                                                                             \
        }                                                                                                    \
        if (!is_so)                                                                                          \
            give_up(#condition);                                                                             \
    } while (0)

static void end_all(void)
{
    pid_t job = atomic_load(&shared->job);
    printf("iteration %lld, paused %d, suspended %d\n", (long long)atomic_load(&shared->iteration),
           atomic_load(&shared->paused), atomic_load(&shared->job_stands));
    if (job > 0)
        kill(job, SIGKILL);
    if (shell > 0) {
        kill(shell, SIGKILL);
        waitpid(shell, NULL, 0);
    }
    shell = 0;
}

static void give_up(const char *condition)
{
    printf("%s\n", screen);
    end_all();
    memset(&program, 0, sizeof program);
    TEST_FAIL("did not come to be: %s", condition);
}

static bool has_ended(void)
{
    if (shell > 0 && waitpid(shell, NULL, WNOHANG) == shell)
        shell = 0;
    return shell == 0;
}

static struct termios settings(void)
{
    struct termios now = {0};
    CHECK_INT(tcgetattr(master, &now), 0);
    return now;
}

static bool settings_are_back(void)
{
    struct termios now = settings();
    return now.c_iflag == before.c_iflag && now.c_oflag == before.c_oflag && now.c_cflag == before.c_cflag &&
           now.c_lflag == before.c_lflag && memcmp(now.c_cc, before.c_cc, sizeof now.c_cc) == 0;
}

static bool gives_keys(void)
{
    struct termios now = settings();
    return (now.c_lflag & (tcflag_t)(ICANON | ECHO)) == 0 && (now.c_lflag & ISIG) != 0;
}

static void begin(void)
{
    if (shared == NULL)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    memset(shared, 0, sizeof *shared);
    memset(screen, 0, sizeof screen);
    screen_length = 0;
    if (master > 0)
        close(master);
    master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        SKIP("no pseudo-terminals here");
    struct winsize size = {.ws_col = 100, .ws_row = 24};
    ioctl(master, TIOCSWINSZ, &size);
    /* A terminal's settings are there while somebody has it open. */
    static int held = -1;
    if (held >= 0)
        close(held);
    held = open(ptsname(master), O_RDWR | O_NOCTTY);
    before = settings();
    fflush(stdout);
    shell = fork();
    if (shell == 0)
        run_shell(ptsname(master));
    WAIT_FOR(atomic_load(&shared->running) || atomic_load(&shared->ended) || has_ended());
    if (!program.no_keys && !program.in_background && program.out == STOPS)
        WAIT_FOR(gives_keys());
}

/* Returns how the training's process ended. */
static int end(void)
{
    WAIT_FOR(has_ended());
    read_screen();
    CHECK(settings_are_back());
    memset(&program, 0, sizeof program);
    return atomic_load(&shared->wait_status);
}

static void type(const char *keys)
{
    CHECK_INT(write(master, keys, strlen(keys)), strlen(keys));
}

static long long iteration(void)
{
    return atomic_load(&shared->iteration);
}

static bool stands(void)
{
    long long first = iteration();
    for (int i = 0; i < 25; i++)
        wait_a_moment();
    return iteration() == first;
}

static void pause_it(void)
{
    type(" ");
    WAIT_FOR(atomic_load(&shared->paused));
    CHECK(stands());
}

/* --- tests --- */

TEST(keys_pause_step_go_on_and_stop)
{
    begin();
    pause_it();
    WAIT_FOR(strstr(screen, "paused"));
    long long first = iteration();
    type("s");
    WAIT_FOR(iteration() == first + 1 && atomic_load(&shared->paused));
    CHECK(stands());
    type("1");
    type("2s");
    WAIT_FOR(iteration() == first + 13 && atomic_load(&shared->paused));
    CHECK(stands());
    CHECK(strstr(screen, "12"));
    type("3xs"); /* another key forgets the number */
    WAIT_FOR(iteration() == first + 14 && atomic_load(&shared->paused));
    CHECK(stands());
    type("p");
    WAIT_FOR(iteration() > first + 20);
    CHECK(!atomic_load(&shared->paused));
    type("q");
    CHECK_INT(end(), 0);
    CHECK_INT(atomic_load(&shared->run_status), SGM_OK);
    CHECK(strstr(screen, "stopped by key q"));
    CHECK(strstr(screen, "space pause, s step, q stop, h help"));
}

TEST(a_step_of_a_running_training_is_its_last_for_now)
{
    begin();
    type("s");
    WAIT_FOR(atomic_load(&shared->paused));
    CHECK(stands());
    type("q");
    CHECK_INT(end(), 0);
}

static int times_shown(const char *text)
{
    int times = 0;
    for (const char *at = screen; (at = strstr(at, text)) != NULL; at++)
        times++;
    return times;
}

/* All that was typed has been read: a key that shows something, again until it does, as one that is read in
 * one piece with a long text before it is a part of that. */
static void wait_until_read(void)
{
    int before_it = times_shown("this help");
    for (int i = 0; i < MAXIMUM_WAITS && times_shown("this help") == before_it; i++) {
        if (i % 50 == 0)
            type("h");
        wait_a_moment();
    }
}

TEST(help_is_shown_and_other_keys_do_nothing)
{
    begin();
    pause_it();
    type("h");
    WAIT_FOR(strstr(screen, "one iteration"));
    WAIT_FOR(strstr(screen, "this help"));
    WAIT_FOR(strstr(strstr(screen, "this help"), "paused")); /* the line is there again */
    type("\033Oq");                                          /* a key of the number pad, not q */
    usleep(20000);
    type("quite a lot of text, s, p, pasted by mistake");
    wait_until_read();
    CHECK(!atomic_load(&shared->ended));
    CHECK(stands());
    CHECK(!strstr(screen, "pasted")); /* no echo */
    type("q");
    CHECK_INT(end(), 0);
}

TEST(settings_come_back_after_signals_that_end_it)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT, SIGUSR1, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        begin();
        if (i % 2 == 1)
            pause_it();
        kill(atomic_load(&shared->job), numbers[i]);
        int status = end();
        if (!SANITIZED || numbers[i] != SIGSEGV) {
            CHECK(WIFSIGNALED(status));
            CHECK_INT(WTERMSIG(status), numbers[i]);
        }
    }
}

TEST(ctrl_c_ends_the_run_with_a_checkpoint_and_the_second_ends_all)
{
    program.catches = true;
    begin();
    type("\003");
    CHECK_INT(WEXITSTATUS(end()), 3);
    CHECK_INT(atomic_load(&shared->run_status), SGM_ERROR_INTERRUPTED);

    program.catches = true;
    program.out = HANGS;
    begin();
    WAIT_FOR(iteration() == 20 && gives_keys());
    type("\003");
    WAIT_FOR(atomic_load(&shared->caught) == SIGINT); /* two that wait to be delivered are one */
    WAIT_FOR(gives_keys() && stands());
    CHECK(!atomic_load(&shared->ended));
    type("\003");
    int status = end();
    CHECK(WIFSIGNALED(status));
    CHECK_INT(WTERMSIG(status), SIGINT);
}

TEST(handlers_of_the_program_are_called)
{
    program.own_handler = true;
    begin();
    kill(atomic_load(&shared->job), SIGTERM);
    WAIT_FOR(atomic_load(&shared->caught) == SIGTERM);
    WAIT_FOR(gives_keys()); /* it lives on, and so do the keys */
    pause_it();
    type("q");
    CHECK_INT(end(), 0);
}

TEST(settings_come_back_after_exit_and_failures)
{
    program.out = EXITS;
    begin();
    CHECK_INT(WEXITSTATUS(end()), 7);
    program.out = FAILS;
    begin();
    CHECK_INT(WEXITSTATUS(end()), 3);
    CHECK_INT(atomic_load(&shared->run_status), SGM_ERROR_STATE);
    program.out = FAILS_AT_ONCE;
    begin();
    CHECK_INT(WEXITSTATUS(end()), 3);
    CHECK_INT(atomic_load(&shared->run_status), SGM_ERROR_STATE);
}

/* `by`: Ctrl-Z, or "" for a signal that cannot be caught. */
static void suspend_and_go_on(const char *by)
{
    if (by[0] != '\0')
        type(by);
    else
        kill(atomic_load(&shared->job), SIGSTOP);
    WAIT_FOR(atomic_load(&shared->job_stands));
    if (by[0] != '\0')
        CHECK(settings_are_back());
    else
        CHECK(gives_keys()); /* the shell's to mend */
    CHECK(stands());
    atomic_store(&shared->go_on, true);
    WAIT_FOR(gives_keys() && !atomic_load(&shared->job_stands));
}

TEST(suspended_it_lets_go_of_the_terminal_and_takes_it_again)
{
    begin();
    for (int i = 0; i < 3; i++) {
        suspend_and_go_on("\032");
        pause_it();
        type("p");
        WAIT_FOR(!atomic_load(&shared->paused));
    }
    suspend_and_go_on("");
    pause_it();
    type("q");
    CHECK_INT(end(), 0);
}

TEST(settings_changed_while_it_was_suspended_are_kept)
{
    begin();
    type("\032");
    WAIT_FOR(atomic_load(&shared->job_stands));
    before.c_cc[VERASE] = 'X';
    CHECK_INT(tcsetattr(master, TCSANOW, &before), 0);
    atomic_store(&shared->go_on, true);
    WAIT_FOR(gives_keys());
    type("q");
    CHECK_INT(end(), 0);
}

TEST(no_keys_unless_asked_for_or_in_the_background)
{
    program.no_keys = true;
    begin();
    type(" q");
    for (int i = 0; i < 50; i++)
        wait_a_moment();
    CHECK(settings_are_back());
    CHECK(!atomic_load(&shared->ended) && !atomic_load(&shared->paused));
    CHECK(!strstr(screen, "keys:"));
    kill(atomic_load(&shared->job), SIGTERM);
    CHECK_INT(WTERMSIG(end()), SIGTERM);

    program.in_background = true;
    begin();
    type("q");
    for (int i = 0; i < 300; i++) /* it looks now and then */
        wait_a_moment();
    CHECK(settings_are_back());
    CHECK(!atomic_load(&shared->ended));
    kill(atomic_load(&shared->job), SIGTERM);
    CHECK_INT(WTERMSIG(end()), SIGTERM);
}
