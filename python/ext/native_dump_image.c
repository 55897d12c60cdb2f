/*
 * native_dump_image.c: image options, from a dict to <marey/image.h>.
 */
#include "native.h"

#include <string.h>

/* A number from a dict; unchanged if missing. -1 and an exception if it is not a number. */
static int number_of(PyObject *options, const char *key, double *out)
{
    PyObject *value = PyDict_GetItemString(options, key);
    if (value == NULL)
        return 0;
    *out = PyFloat_AsDouble(value);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int count_of(PyObject *options, const char *key, uint32_t *out)
{
    PyObject *value = PyDict_GetItemString(options, key);
    const unsigned long number = value != NULL ? PyLong_AsUnsignedLong(value) : *out;
    if (value != NULL && PyErr_Occurred())
        return -1;
    if (number > UINT32_MAX)
        return EXT_FAIL(PyExc_ValueError, "the option %s of an image is too large", key);
    *out = (uint32_t)number;
    return 0;
}

/* One of several words, as its index. */
static int word_of(PyObject *options, const char *key, const char *const *words, int *out)
{
    PyObject *value = PyDict_GetItemString(options, key);
    if (value == NULL)
        return 0;
    for (int i = 0; words[i] != NULL; i++) {
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, words[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return EXT_FAIL(PyExc_ValueError, "the option %s of an image cannot be %R", key, value);
}

/* "each", "batch", or a pair of numbers. */
static int range_of(PyObject *options, struct marey_image_options *out)
{
    static const char *const words[] = {"each", "batch", NULL};
    PyObject *value = PyDict_GetItemString(options, "range");
    int word = 0;
    if (value == NULL || PyUnicode_Check(value)) {
        const int rc = word_of(options, "range", words, &word);
        out->range = word == 0 ? MAREY_RANGE_EACH : MAREY_RANGE_BATCH;
        return rc;
    }
    PyObject *pair EXT_OWNED =
        PySequence_Fast(value, "the range of an image is a word or two numbers");
    if (pair == NULL)
        return -1;
    if (PySequence_Fast_GET_SIZE(pair) == 2) {
        out->range = MAREY_RANGE_FIXED;
        out->low = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(pair, 0));
        out->high = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(pair, 1));
    } else
        PyErr_SetString(PyExc_ValueError, "the range of an image is a word or two numbers");
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- drawings ---- */

/*
 * Rows of numbers, at least `least` each: those of a box or point, then the index of its image (0), then its color
 * (red). Returns the values as doubles, `least` + 2 per row, to be freed. -1 and an exception on failure.
 */
static int rows_of(PyObject *options, const char *key, Py_ssize_t least, double **out, size_t *n)
{
    enum { RED = 0xff0000 };
    PyObject *value = PyDict_GetItemString(options, key);
    *out = NULL;
    *n = 0;
    if (value == NULL)
        return 0;
    PyObject *rows EXT_OWNED = PySequence_Fast(value, "boxes and points of an image are sequences");
    if (rows == NULL)
        return -1;
    const Py_ssize_t n_rows = PySequence_Fast_GET_SIZE(rows);
    double *values = PyMem_Calloc((size_t)n_rows + 1, (size_t)(least + 2) * sizeof *values);
    if (values == NULL)
        return EXT_NO_MEMORY();
    for (Py_ssize_t i = 0; i < n_rows && !PyErr_Occurred(); i++) {
        PyObject *row EXT_OWNED =
            PySequence_Fast(PySequence_Fast_GET_ITEM(rows, i),
                            "boxes and points of an image are sequences of numbers");
        const Py_ssize_t len = row != NULL ? PySequence_Fast_GET_SIZE(row) : 0;
        double *const at = values + i * (least + 2);
        at[least + 1] = RED;
        if (row != NULL && (len < least || len > least + 2))
            PyErr_Format(PyExc_ValueError, "each of the %s of an image has %zd to %zd numbers", key,
                         least, least + 2);
        for (Py_ssize_t j = 0; j < len && !PyErr_Occurred(); j++)
            at[j] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(row, j));
    }
    *out = values;
    *n = (size_t)n_rows;
    return PyErr_Occurred() ? -1 : 0;
}

/* The rows of `key` as elements of `size` bytes, each converted by `fill`; to be freed. -1 and an exception on failure. */
static int elements_of(PyObject *options, const char *key, Py_ssize_t least, size_t size,
                       void (*fill)(void *element, const double *row), void **out, size_t *n)
{
    double *rows EXT_FREED = NULL;
    size_t n_rows;
    if (rows_of(options, key, least, &rows, &n_rows) < 0)
        return -1;
    *out = n_rows > 0 ? PyMem_Calloc(n_rows, size) : NULL;
    if (n_rows > 0 && *out == NULL)
        return EXT_NO_MEMORY();
    *n = n_rows;
    for (size_t i = 0; i < n_rows; i++)
        fill((char *)*out + i * size, rows + i * (size_t)(least + 2));
    return 0;
}

static void fill_box(void *element, const double *row)
{
    *(struct marey_box *)element = (struct marey_box){.x0 = row[0],
                                                      .y0 = row[1],
                                                      .x1 = row[2],
                                                      .y1 = row[3],
                                                      .image = (uint32_t)row[4],
                                                      .color = (uint32_t)row[5]};
}

static void fill_point(void *element, const double *row)
{
    *(struct marey_point *)element = (struct marey_point){
        .x = row[0], .y = row[1], .image = (uint32_t)row[2], .color = (uint32_t)row[3]};
}

static int drawings_of(PyObject *options, struct native_image *out)
{
    void *boxes = NULL, *points = NULL;
    struct marey_image_options *const o = &out->options;
    int rc = elements_of(options, "boxes", 4, sizeof *out->boxes, fill_box, &boxes, &o->n_boxes);
    if (rc == 0)
        rc = elements_of(options, "points", 2, sizeof *out->points, fill_point, &points,
                         &o->n_points);
    o->boxes = out->boxes = boxes;
    o->points = out->points = points;
    return rc;
}

static int mask_of(struct native_state *state, PyObject *options, struct native_image *out)
{
    PyObject *value = PyDict_GetItemString(options, "mask");
    if (value == NULL)
        return 0;
    const int rc = native_tensor_init(state, value, &out->mask);
    if (rc == 0)
        PyErr_Format(PyExc_TypeError, "the mask of an image is a tensor, not %.200s",
                     Py_TYPE(value)->tp_name);
    out->has_mask = rc > 0;
    out->options.mask = out->mask.tensor;
    return rc > 0 ? 0 : -1;
}

/* An unknown key would be an option without effect. */
static int check_keys(PyObject *options)
{
    static const char *const known[] = {"range", "depth",      "channels",     "map",
                                        "boxes", "points",     "line_width",   "point_radius",
                                        "mask",  "mask_color", "mask_opacity", NULL};
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(options, &at, &key, &value)) {
        int i = 0;
        while (known[i] != NULL &&
               !(PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, known[i]) == 0))
            i++;
        if (known[i] == NULL)
            return EXT_FAIL(
                PyExc_ValueError,
                "no option of an image is called %R; there are range, depth, channels, map, "
                "boxes, points, line_width, point_radius, mask, mask_color and mask_opacity",
                key);
    }
    return 0;
}

int native_image_init(struct native_state *state, PyObject *options, struct native_image *out)
{
    static const char *const channels[] = {"auto", "last", "first", "none", NULL};
    static const char *const maps[] = {"none", "viridis", "heat", "diverging", NULL};
    int channel = 0, map = 0;
    memset(out, 0, sizeof *out);
    if (!PyDict_Check(options))
        return EXT_FAIL(PyExc_TypeError, "image options must be a dict, not %.200s",
                        Py_TYPE(options)->tp_name);
    struct marey_image_options *const o = &out->options;
    if (check_keys(options) < 0 || range_of(options, o) < 0 ||
        count_of(options, "depth", &o->depth) < 0 ||
        word_of(options, "channels", channels, &channel) < 0 ||
        word_of(options, "map", maps, &map) < 0 ||
        count_of(options, "line_width", &o->line_width) < 0 ||
        count_of(options, "point_radius", &o->point_radius) < 0 ||
        count_of(options, "mask_color", &o->mask_color) < 0 ||
        number_of(options, "mask_opacity", &o->mask_opacity) < 0 || drawings_of(options, out) < 0 ||
        mask_of(state, options, out) < 0) {
        native_image_fini(out);
        return -1;
    }
    o->channels = (enum marey_channel_axis)channel;
    o->map = (enum marey_color_map)map;
    return 0;
}

void native_image_fini(struct native_image *image)
{
    PyMem_Free(image->boxes);
    PyMem_Free(image->points);
    if (image->has_mask)
        native_tensor_fini(&image->mask);
    image->boxes = NULL;
    image->points = NULL;
    image->has_mask = 0;
}
