/* A program that knows a site for communication and never begins a range of it. */
#include <string.h>

#include <marey/marey.h>

int main(void)
{
    const char *const name = "all_reduce";
    (void)marey_site_intern(name, strlen(name), MAREY_COMMUNICATION, 0, NULL, 0);
    MAREY_SCOPE("work");
    return 0;
}
