/* A program with a call site for communication that never begins a range there. */
#include <string.h>

#include <marey/marey.h>

int main(void)
{
    const char *const name = "all_reduce";
    (void)marey_site_intern(name, strlen(name), MAREY_COMMUNICATION, 0, NULL, 0);
    MAREY_SCOPE("work");
    return 0;
}
