/*
 * fault_names RECORDING N: with N 0, one range for each awkward name; else one range for each of N distinct names, and the
 * number of the last name's id is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sequence.h"

enum { LONG_NAME = 1 << 20 };

static void record_name(const char *name, size_t len)
{
    const marey_id id = marey_site_intern(name, len, NULL, 0, NULL, 0);
    marey_begin(id);
    marey_end(id);
}

static void record_awkward_names(void)
{
    static const struct {
        const char *bytes;
        size_t len;
    } awkward[] = {
        {"double \" and single ' quotes", 28},
        {"new\nline and \ttab", 17},
        {"zero\0inside", 11},
        {"invalid \xff\xc3( utf-8", 17},
        {"back\\slash", 10},
        {"<script>&amp;</script>", 22},
        {"", 0},
        {"\xe2\x82\xac and \xf0\x9f\x98\x80", 12},
    };
    for (size_t i = 0; i < sizeof awkward / sizeof awkward[0]; i++)
        record_name(awkward[i].bytes, awkward[i].len);
    char *longest = malloc(LONG_NAME);
    memset(longest, 'x', LONG_NAME);
    record_name(longest, LONG_NAME);
    free(longest);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const long n = atol(argv[2]);
    if (marey_start(&(struct marey_options){.path = argv[1], .text = "pool=64M"}) != MAREY_OK)
        return 1;
    if (n == 0)
        record_awkward_names();
    marey_id last = 0;
    for (long i = 0; i < n; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "name %ld", i);
        record_name(name, (size_t)len);
        last = marey_site_intern(name, (size_t)len, NULL, 0, NULL, 0);
    }
    printf("%u\n", last);
    return marey_stop() == MAREY_OK ? 0 : 1;
}
