/* See energy_plant.h. */
#include "energy_plant.h"

static uint64_t to_ns(double t)
{
    return (uint64_t)llround(t * 1e9);
}

void plant_begin(struct plant *plant, const char *const *pairs)
{
    static const char *const names[] = {"one", "two",   "three", "four", "five",
                                        "six", "seven", "eight", "nine"};
    *plant = (struct plant){.next_site = 10};
    log_put_process(&plant->log, NULL, NULL);
    if (pairs != NULL)
        log_put_pairs(&plant->log, MAREY__BLOCK_LOG, pairs);
    for (uint32_t i = 0; i < 9; i++)
        log_put_site(&plant->log, i + 1, names[i]);
    log_put_lane(&plant->log, 0, 100, "main");
    log_put_lane(&plant->log, 1, 101, "marey-energy");
    log_put_moment(&plant->log, 0, 0);
    log_put_moment(&plant->log, 1000000000, 1000000000);
}

uint32_t plant_site(struct plant *plant, const char *device, const char *quantity)
{
    char name[128], domain[128];
    snprintf(name, sizeof name, "%s %s (unit)", strcmp(device, "GPU-a") == 0 ? "GPU 0" : device,
             quantity);
    snprintf(domain, sizeof domain, "%s|%s", device, quantity);
    log_put_site_of(&plant->log, plant->next_site, name, "energy", domain);
    return plant->next_site++;
}

void plant_words(struct plant *plant, uint32_t lane)
{
    if (plant->log.n_words != 0)
        log_put_words(&plant->log, lane, plant->sequence[lane]++);
}

void plant_reading(struct plant *plant, uint32_t site, double t, double value)
{
    uint64_t words[2] = {site};
    memcpy(&words[1], &value, sizeof value);
    log_record(&plant->log, to_ns(t), MAREY_RECORD_COUNTER, words, 2);
    if (plant->log.n_words > 3900)
        plant_words(plant, 1);
}

void plant_power(struct plant *plant, const char *device, const struct curve *curve, double from,
                 double to, double hz)
{
    const uint32_t site = plant_site(plant, device, "power");
    for (size_t i = 0; from + (double)i / hz <= to + 1e-9; i++)
        plant_reading(plant, site, from + (double)i / hz, curve->power(from + (double)i / hz));
    plant_words(plant, 1);
}

void plant_counter(struct plant *plant, const char *device, const struct curve *curve, double from,
                   double to, double step)
{
    const uint32_t site = plant_site(plant, device, "energy");
    for (double t = from; t < to - step / 2; t += step)
        plant_reading(plant, site, t, 5000 + curve->energy(t));
    plant_reading(plant, site, to, 5000 + curve->energy(to));
    plant_words(plant, 1);
}

void plant_range(struct plant *plant, double from, double to, uint32_t site)
{
    log_begin(&plant->log, to_ns(from), site);
    log_end(&plant->log, to_ns(to), site);
}

void plant_epoch(struct plant *plant, double at, uint64_t number, bool begins)
{
    log_epoch(&plant->log, to_ns(at), number, begins);
}

void plant_finish(struct plant *plant, const char *folder, const char *name)
{
    char path[256];
    log_put_end(&plant->log, "stop");
    snprintf(path, sizeof path, "%s/%s.klog", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(plant->log.bytes.data, 1, plant->log.bytes.len, file),
                     plant->log.bytes.len);
    assert_int_equal(fclose(file), 0);
    log_maker_fini(&plant->log);
}

/* ---- looking into tables ---- */

marey_status create_energy(marey_recording *recording, const char *const *settings, marey_report **out)
{
    const struct marey_report_options options = {.settings = settings};
    return marey_report_create("energy", &recording, 1, &options, out);
}

marey_report *report_of(const char *folder, const char *const *settings)
{
    marey_recording *recording = NULL;
    marey_report *report = NULL;
    assert_int_equal(marey_recording_open(folder, &recording), MAREY_OK);
    if (create_energy(recording, settings, &report) != MAREY_OK)
        fail_msg("%s", marey_last_error());
    marey_recording_close(recording); /* the report stands alone */
    return report;
}

struct marey_cell cell_in(marey_report *report, const char *table, size_t row, const char *column)
{
    const marey_table *t = marey_report_table(report, table);
    assert_non_null(t);
    assert_true(row < marey_table_n_rows(t));
    const int c = marey_table_find(t, column);
    assert_true(c >= 0);
    return marey_table_cell(t, row, (size_t)c);
}

double number_in(marey_report *report, const char *table, size_t row, const char *column)
{
    const marey_table *t = marey_report_table(report, table);
    const struct marey_cell cell = cell_in(report, table, row, column);
    assert_false(cell.is_null);
    switch (marey_table_column(t, (size_t)marey_table_find(t, column))->type) {
    case MAREY_TYPE_F64:
        return cell.as.f64;
    case MAREY_TYPE_I64:
        return (double)cell.as.i64;
    default:
        return (double)cell.as.u64;
    }
}

const char *text_in(marey_report *report, const char *table, size_t row, const char *column)
{
    const struct marey_cell cell = cell_in(report, table, row, column);
    return cell.is_null ? "(null)" : cell.as.text;
}

size_t rows_in(marey_report *report, const char *table)
{
    return marey_table_n_rows(marey_report_table(report, table));
}

size_t row_named(marey_report *report, const char *table, const char *column, const char *text)
{
    for (size_t row = 0; row < rows_in(report, table); row++)
        if (strcmp(text_in(report, table, row, column), text) == 0)
            return row;
    fail_msg("no row with %s %s in %s", column, text, table);
    return 0;
}

bool has_note(marey_report *report, const char *part)
{
    for (size_t row = 0; row < rows_in(report, "notes"); row++)
        if (strstr(text_in(report, "notes", row, "text"), part) != NULL)
            return true;
    return false;
}
