/*
 * What can be told about a Python program by its command line: which script it runs, and whether it
 * was told to leave PYTHONPATH alone, by which recording enters it.
 */
#include <fcntl.h>
#include <unistd.h>

#include "run.h"

static bool is_python(const char *path)
{
    const char *name = basename(path);
    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/*
 * The interpreter's own options, up to the script: skip one word, or two for those that take a
 * value.
 */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static bool takes_next_word(const char *option)
{
    return strcmp(option, "-W") == 0 || strcmp(option, "-X") == 0 ||
           strcmp(option, "--check-hash-based-pycs") == 0;
}

const char *run_python_script(char *const *program)
{
    if (!is_python(program[0])) {
        /* A launcher names the script among its arguments. */
        for (char *const *word = program; *word != NULL; word++) {
            const size_t len = strlen(*word);
            if (len > 3 && strcmp(*word + len - 3, ".py") == 0)
                return *word;
        }
        return NULL;
    }
    for (char *const *word = program + 1; *word != NULL; word++) {
        if (!is_option(*word))
            return *word;
        if (strcmp(*word, "-m") == 0)
            return word[1];
        if (strcmp(*word, "-c") == 0)
            return NULL;
        if (takes_next_word(*word) && word[1] != NULL)
            word++;
    }
    return NULL;
}

bool run_is_python(char *const *program)
{
    return is_python(program[0]) || run_python_script(program) != NULL;
}

/* The deaf-making letter in one word of options, -I or -bES, or 0. */
static char deaf_letter(const char *option)
{
    if (option[0] != '-' || option[1] == '-')
        return 0;
    for (const char *letter = option + 1; *letter != '\0' && strchr("cmWX", *letter) == NULL;
         letter++) {
        if (strchr("IES", *letter) != NULL)
            return *letter;
    }
    return 0;
}

/* The same in a script's first line: #!/usr/bin/python3 -I */
static char deaf_shebang(const char *path)
{
    char line[256] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    if (n < 2 || line[0] != '#' || line[1] != '!' || strstr(line, "python") == NULL)
        return 0;
    line[strcspn(line, "\n")] = '\0';
    for (const char *option = strstr(line, " -"); option != NULL;
         option = strstr(option + 2, " -")) {
        const char letter = deaf_letter(option + 1);
        if (letter != 0)
            return letter;
    }
    return 0;
}

char run_python_deaf(char *const *program)
{
    if (!is_python(program[0]))
        return deaf_shebang(program[0]);
    for (char *const *word = program + 1; *word != NULL && is_option(*word); word++) {
        const char letter = deaf_letter(*word);
        if (letter != 0)
            return letter;
        if (strcmp(*word, "-m") == 0 || strcmp(*word, "-c") == 0)
            return 0;
        if (takes_next_word(*word) && word[1] != NULL)
            word++;
    }
    return 0;
}
