/*
 * Words to numbers, separately for each function.
 *
 *     last     the words of the last call: most calls match
 *     memo     64 slots by hash, each with the last words that hashed there
 *     exact    single signatures, up to the cap, by hash
 *     wide     signatures that cover several
 *
 * Past the cap, new words are widened. Sizes in which known signatures of the same structure differ, or this one from
 * them, become a range between powers of two, so that a function called with ten thousand lengths has a row for each
 * doubling. When there are too many of those as well, the rest is "other shapes". Words with the same text (two types
 * with one name) are one signature, and use only one exact slot.
 */
#include "calls/calls_signer.h"

enum { DEFAULT_MOST = 64, MEMO = 64 };

struct entry {
    uint64_t *words; /* owned; NULL: empty */
    char *text;      /* owned; only for exact ones */
    uint64_t hash;
    uint64_t wide; /* bits of words that represent a range */
    uint32_t n_words, number;
    bool is_wide;
};

struct calls_function {
    PyObject *names; /* owned: names of the last called code; another code object may have other parameters */
    uint32_t n_parameters, flags;
    struct entry last;
    struct entry *exact, *wide;
    uint32_t n_exact, n_wide, room_exact;
    uint32_t other; /* the number of "other shapes"; 0: not assigned yet */
    struct entry memo[MEMO];
};

static uint64_t hash_of(const uint64_t *words, size_t n)
{
    uint64_t hash = n * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool is_same(const struct entry *entry, uint64_t hash, const uint64_t *words, size_t n)
{
    return entry->hash == hash && entry->n_words == n && entry->words != NULL &&
           memcmp(entry->words, words, n * sizeof *words) == 0;
}

/*
 * The same for few words, where memcmp() would cost more. One by one: words stored a few cycles ago can be forwarded if
 * they are loaded as they were stored, but not if two are loaded together.
 */
static bool has_same_words(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* Replaces the entry. False on out of memory; it is then empty. */
static bool entry_fill(struct entry *entry, const struct entry *from)
{
    uint64_t *const words = PyMem_Realloc(entry->words, (from->n_words + 1) * sizeof *words);
    if (words == NULL) {
        PyMem_Free(entry->words);
        *entry = (struct entry){0};
        return false;
    }
    if (from->n_words > 0)
        memcpy(words, from->words, from->n_words * sizeof *words);
    *entry = *from;
    entry->words = words;
    return true;
}

/* ---- functions ---- */

static void function_clear(struct calls_function *function)
{
    for (uint32_t i = 0; i < function->n_exact; i++) {
        PyMem_Free(function->exact[i].words);
        PyMem_Free(function->exact[i].text);
    }
    for (uint32_t i = 0; i < function->n_wide; i++)
        PyMem_Free(function->wide[i].words);
    for (uint32_t i = 0; i < MEMO; i++)
        PyMem_Free(function->memo[i].words);
    PyMem_Free(function->last.words);
    PyMem_Free(function->exact);
    PyMem_Free(function->wide);
    Py_XDECREF(function->names);
    *function = (struct calls_function){0};
}

void calls_functions_fini(struct calls_signer *signer)
{
    for (uint32_t i = 0; i < signer->n_functions; i++)
        if (signer->functions[i] != NULL) {
            function_clear(signer->functions[i]);
            PyMem_Free(signer->functions[i]);
        }
    PyMem_Free(signer->functions);
}

/* The data of a function, created if new. NULL on out of memory. */
static struct calls_function *function_get(struct calls_signer *signer, uint32_t number)
{
    if (number >= signer->n_functions) {
        const uint32_t n = number + number / 2 + 64;
        struct calls_function **const all = PyMem_Realloc(signer->functions, n * sizeof(void *));
        if (all == NULL)
            return NULL;
        memset(all + signer->n_functions, 0, (n - signer->n_functions) * sizeof(void *));
        signer->functions = all;
        signer->n_functions = n;
    }
    if (signer->functions[number] == NULL)
        signer->functions[number] = PyMem_Calloc(1, sizeof(struct calls_function));
    return signer->functions[number];
}

static bool has_same_names(PyObject *a, PyObject *b, uint32_t n)
{
    bool is_same = (Py_ssize_t)n <= PyTuple_GET_SIZE(a) && (Py_ssize_t)n <= PyTuple_GET_SIZE(b);
    for (uint32_t i = 0; is_same && i < n; i++)
        is_same = PyTuple_GET_ITEM(a, i) == PyTuple_GET_ITEM(b, i) ||
                  PyUnicode_Compare(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)) == 0;
    PyErr_Clear();
    return is_same;
}

/* Another code object has the number, as when a function is redefined: drop data that no longer match its parameters. */
static void function_meet(struct calls_function *function,
                          const struct calls_parameters *parameters, uint32_t flags)
{
    const bool is_known = function->names != NULL && function->n_parameters == parameters->n &&
                          function->flags == flags &&
                          has_same_names(function->names, parameters->names, parameters->n);
    if (!is_known)
        function_clear(function);
    Py_XSETREF(function->names, Py_NewRef(parameters->names));
    function->n_parameters = parameters->n;
    function->flags = flags;
}

/* ---- new signatures ---- */

static uint32_t most_of(const struct calls_signer *signer)
{
    return signer->options.most != 0 ? signer->options.most : DEFAULT_MOST;
}

static uint32_t most_wide(const struct calls_signer *signer)
{
    return most_of(signer) / 4 + 1;
}

/* On out of memory it is not stored, and counts as new next time. */
static void add_exact(struct calls_signer *signer, struct calls_function *function,
                      const struct entry *entry, const struct calls_text *text)
{
    if (function->n_exact == function->room_exact) {
        uint32_t room = function->room_exact * 2 + 2;
        room = room < most_of(signer) ? room : most_of(signer);
        struct entry *const exact = PyMem_Realloc(function->exact, room * sizeof *exact);
        if (exact == NULL)
            return;
        function->exact = exact;
        function->room_exact = room;
    }
    char *const copy = PyMem_Malloc(text->length + 1);
    struct entry *const place = &function->exact[function->n_exact];
    *place = (struct entry){0};
    if (copy == NULL || !entry_fill(place, entry)) {
        PyMem_Free(copy);
        return;
    }
    memcpy(copy, text->text, text->length + 1);
    place->text = copy;
    function->n_exact++;
}

/* The sizes in which these words differ from exact ones that are equal except for sizes. */
static uint64_t differing(const struct calls_function *function, const uint64_t *words, uint32_t n,
                          uint64_t sizes)
{
    uint64_t different = 0;
    bool has_any = false;
    for (uint32_t i = 0; i < function->n_exact; i++) {
        const struct entry *const known = &function->exact[i];
        uint64_t here = 0;
        for (uint32_t k = 0; known->n_words == n && k < n; k++)
            here |= (uint64_t)(known->words[k] != words[k]) << k;
        if (known->n_words != n || (here & ~sizes) != 0)
            continue;
        different |= here;
        has_any = true;
    }
    return has_any ? different : sizes;
}

/* One number for all signatures without another one; 0 on failure. */
static uint32_t other_shapes(struct calls_signer *signer, struct marey_calls *calls,
                             uint32_t number, struct calls_function *function)
{
    static const char text[] = "other shapes";
    if (function->other == 0)
        function->other = signer->options.define(calls, number, text, sizeof text - 1, 0);
    return function->other;
}

/* Replaces sizes by the first of their range. */
static void widen(struct entry *entry, uint64_t wide)
{
    entry->wide = wide;
    for (uint32_t i = 0; i < entry->n_words; i++)
        if (wide >> i & 1)
            entry->words[i] = calls_range_first(entry->words[i]);
    entry->hash = hash_of(entry->words, entry->n_words) ^ wide;
}

static uint32_t number_wide(struct calls_signer *signer, struct marey_calls *calls, uint32_t number,
                            PyCodeObject *code, struct calls_function *function,
                            const struct entry *met, struct calls_text *text)
{
    uint64_t words[CALLS_SIGN_WORDS];
    struct entry entry = *met;
    entry.words = words;
    if (met->n_words > 0)
        memcpy(words, met->words, met->n_words * sizeof *words);
    widen(&entry, differing(function, met->words, met->n_words, text->sizes));
    for (uint32_t i = 0; i < function->n_wide; i++)
        if (function->wide[i].wide == entry.wide &&
            is_same(&function->wide[i], entry.hash, words, entry.n_words))
            return function->wide[i].number;
    if (function->wide == NULL)
        function->wide = PyMem_Calloc(most_wide(signer), sizeof *function->wide);
    if (entry.wide == 0 || function->wide == NULL || function->n_wide == most_wide(signer))
        return other_shapes(signer, calls, number, function);
    calls_text_make(signer, code, words, entry.n_words, entry.wide, text);
    entry.number = signer->options.define(calls, number, text->text, text->length, 0);
    function->n_wide += entry_fill(&function->wide[function->n_wide], &entry);
    return entry.number;
}

/* The exact signature with that text, or NULL. */
static const struct entry *find_text(const struct calls_function *function,
                                     const struct calls_text *text)
{
    for (uint32_t i = 0; i < function->n_exact; i++)
        if (strcmp(function->exact[i].text, text->text) == 0)
            return &function->exact[i];
    return NULL;
}

/* Sets the number of words that are new, or were dropped. */
static void number_new(struct calls_signer *signer, struct marey_calls *calls, uint32_t number,
                       PyCodeObject *code, struct calls_function *function, struct entry *met)
{
    struct calls_text text;
    calls_text_make(signer, code, met->words, met->n_words, 0, &text);
    const struct entry *const known = find_text(function, &text);
    if (known != NULL) {
        met->number = known->number;
    } else if (function->n_exact < most_of(signer)) {
        met->number = signer->options.define(calls, number, text.text, text.length, text.elements);
        if (met->number != 0)
            add_exact(signer, function, met, &text);
    } else {
        met->is_wide = true;
        met->number = number_wide(signer, calls, number, code, function, met, &text);
    }
}

/* ---- numbers ---- */

/* The words are not those of the last call. */
static uint32_t number_other(struct calls_signer *signer, struct marey_calls *calls, uint32_t number,
                             PyCodeObject *code, struct calls_function *function, struct entry *met)
{
    met->hash = hash_of(met->words, met->n_words);
    struct entry *const memo = &function->memo[met->hash % MEMO];
    const struct entry *found = is_same(memo, met->hash, met->words, met->n_words) ? memo : NULL;
    for (uint32_t i = 0; found == NULL && i < function->n_exact; i++)
        if (is_same(&function->exact[i], met->hash, met->words, met->n_words))
            found = &function->exact[i];
    if (found != NULL) {
        met->number = found->number;
        met->is_wide = found->is_wide;
    } else {
        EXT_KEEP_ERROR();
        number_new(signer, calls, number, code, function, met);
    }
    if (met->number != 0) {
        if (found != memo)
            entry_fill(memo, met);
        entry_fill(&function->last, met);
    }
    return met->number;
}

uint32_t calls_sign_number(struct calls_signer *signer, struct marey_calls *calls, uint32_t number,
                           PyCodeObject *code, const uint64_t *words, size_t n_words)
{
    if (!(code->co_flags & CO_NEWLOCALS))
        return 0;
    struct calls_function *const function =
        number < signer->n_functions && signer->functions[number] != NULL
            ? signer->functions[number]
            : function_get(signer, number);
    if (function == NULL)
        return 0;
    const struct calls_parameters parameters = calls_parameters(code);
    const uint32_t flags = (uint32_t)code->co_flags & (CO_VARARGS | CO_VARKEYWORDS);
    if (function->names != parameters.names || function->n_parameters != parameters.n ||
        function->flags != flags)
        function_meet(function, &parameters, flags);
    const struct entry *const last = &function->last;
    uint32_t result = last->number;
    bool is_wide = last->is_wide;
    if (last->n_words != n_words || last->words == NULL ||
        !has_same_words(last->words, words, n_words)) {
        struct entry met = {.words = (uint64_t *)words, .n_words = (uint32_t)n_words};
        result = number_other(signer, calls, number, code, function, &met);
        is_wide = met.is_wide;
    }
    if (is_wide && signer->options.count_widened != NULL)
        signer->options.count_widened(calls);
    return result;
}
