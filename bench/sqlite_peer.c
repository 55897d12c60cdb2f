/*
 * The peer of the SQLite export: the same columns of the same ranges by INSERT ... VALUES, one
 * statement per row, with the usual settings for fast inserts: one transaction, no journal, no
 * syncs, a large cache.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "sqlite_peer.h"

enum { MAX_DEPTH = 64 };

struct peer {
    sqlite3_stmt *insert;
    sqlite3_int64 next_id;
    int depth;
    struct {
        sqlite3_int64 id;
        uint64_t start_ns, children_ns;
        uint32_t site;
    } stack[MAX_DEPTH + 1]; /* [0] is the thread */
};

static marey_status put_range(struct peer *peer, uint64_t ns)
{
    const int at = peer->depth--;
    const uint64_t duration_ns = ns - peer->stack[at].start_ns;
    peer->stack[at - 1].children_ns += duration_ns;
    sqlite3_bind_int64(peer->insert, 1, peer->stack[at].id);
    sqlite3_bind_int64(peer->insert, 2, 1);
    if (at > 1)
        sqlite3_bind_int64(peer->insert, 3, peer->stack[at - 1].id);
    else
        sqlite3_bind_null(peer->insert, 3);
    sqlite3_bind_int64(peer->insert, 4, at - 1);
    sqlite3_bind_int64(peer->insert, 5, 0);
    sqlite3_bind_int64(peer->insert, 6, peer->stack[at].site);
    sqlite3_bind_int64(peer->insert, 7, (sqlite3_int64)peer->stack[at].start_ns);
    sqlite3_bind_int64(peer->insert, 8, (sqlite3_int64)duration_ns);
    sqlite3_bind_int64(peer->insert, 9, (sqlite3_int64)(duration_ns - peer->stack[at].children_ns));
    sqlite3_bind_null(peer->insert, 10);
    const bool is_done = sqlite3_step(peer->insert) == SQLITE_DONE;
    return sqlite3_reset(peer->insert) == SQLITE_OK && is_done ? MAREY_OK : MAREY_EIO;
}

static marey_status put_batch(void *ctx, const struct marey_batch *batch)
{
    struct peer *peer = ctx;
    for (size_t i = 0; i < batch->n; i++) {
        const uint64_t word = batch->words[i], ns = marey_batch_ns(batch, word);
        if (marey_word_kind(word) == MAREY_KIND_BEGIN && peer->depth < MAX_DEPTH) {
            const int at = ++peer->depth;
            peer->stack[at].id = ++peer->next_id;
            peer->stack[at].site = marey_word_id(word);
            peer->stack[at].start_ns = ns;
            peer->stack[at].children_ns = 0;
        } else if (marey_word_kind(word) == MAREY_KIND_END && peer->depth > 0) {
            MAREY_TRY(put_range(peer, ns));
        }
    }
    return MAREY_OK;
}

static const char settings[] =
    "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -16384; BEGIN;"
    "CREATE TABLE range(id INTEGER PRIMARY KEY, thread INTEGER, parent INTEGER, depth INTEGER,"
    " recursion INTEGER, site INTEGER, start_ns INTEGER, duration_ns INTEGER, self_ns INTEGER, "
    "payload)";

marey_status sqlite_peer_export(marey_recording *recording, const char *to)
{
    sqlite3 *sqlite = NULL;
    struct peer peer = {0};
    unlink(to);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    bool is_fine = sqlite3_open_v2(to, &sqlite, flags, NULL) == SQLITE_OK &&
                   sqlite3_exec(sqlite, settings, NULL, NULL, NULL) == SQLITE_OK &&
                   sqlite3_prepare_v3(sqlite, "INSERT INTO range VALUES(?,?,?,?,?,?,?,?,?,?)", -1,
                                      SQLITE_PREPARE_PERSISTENT, &peer.insert, NULL) == SQLITE_OK;
    is_fine = is_fine && marey_recording_visit(recording, 0, put_batch, &peer) == MAREY_OK;
    sqlite3_finalize(peer.insert);
    is_fine = is_fine && sqlite3_exec(sqlite, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(sqlite);
    return is_fine ? MAREY_OK : MAREY_EIO;
}
