/* ref_number.c - builtin arithmetic, comparison and logic, and functions over lists of numbers.
 *
 * Integers stay exact: a result outside 64 bits is a failure, never a rounded number.
 */

#include <math.h>
#include <stdio.h>

#include "module/ref.h"

static bool is_number(stet_value v) {
    return stet_value_type(v) == STET_TYPE_INT || stet_value_type(v) == STET_TYPE_DOUBLE;
}

static stet_status number(ref_call *call, const char *name, stet_value *out, stet_error *err) {
    stet_status status = ref_arg(call, name, STET_RECURSIVE, out, err);
    if (status == STET_OK && !is_number(*out))
        return ref_expected(err, name, "a number", *out);
    return status;
}

static stet_status two(ref_call *call, stet_value *a, stet_value *b, stet_error *err) {
    stet_status status = number(call, "a", a, err);
    return status == STET_OK ? number(call, "b", b, err) : status;
}

static bool both_int(stet_value a, stet_value b) {
    return stet_value_type(a) == STET_TYPE_INT && stet_value_type(b) == STET_TYPE_INT;
}

static stet_status overflow(stet_error *err) {
    stet_fail(err, STET_LIMIT, "the result does not fit in a 64-bit integer");
    stet_hint(err, "make one of the numbers a decimal (1.5, 2e0 is the integer 2) if rounding is wanted");
    return STET_LIMIT;
}

static stet_status plus(stet_value a, stet_value b, stet_value *out, stet_error *err) {
    int64_t r;
    if (!both_int(a, b))
        return stet_value_double(stet_value_as_double(a) + stet_value_as_double(b), out, err);
    if (__builtin_add_overflow(stet_value_as_int(a), stet_value_as_int(b), &r))
        return overflow(err);
    *out = stet_value_int(r);
    return STET_OK;
}

static stet_status minus(stet_value a, stet_value b, stet_value *out, stet_error *err) {
    int64_t r;
    if (!both_int(a, b))
        return stet_value_double(stet_value_as_double(a) - stet_value_as_double(b), out, err);
    if (__builtin_sub_overflow(stet_value_as_int(a), stet_value_as_int(b), &r))
        return overflow(err);
    *out = stet_value_int(r);
    return STET_OK;
}

static stet_status times(stet_value a, stet_value b, stet_value *out, stet_error *err) {
    int64_t r;
    if (!both_int(a, b))
        return stet_value_double(stet_value_as_double(a) * stet_value_as_double(b), out, err);
    if (__builtin_mul_overflow(stet_value_as_int(a), stet_value_as_int(b), &r))
        return overflow(err);
    *out = stet_value_int(r);
    return STET_OK;
}

/* Folds numbers from the left. */
static stet_status fold(ref_call *call, int64_t from,
                        stet_status (*step)(stet_value, stet_value, stet_value *, stet_error *), stet_value *out,
                        stet_error *err) {
    stet_value list;
    stet_status status = ref_rest(call, &list, err);
    if (status != STET_OK)
        return status;
    stet_value total = stet_value_int(from);
    for (size_t i = 0; i < stet_value_count(list) && status == STET_OK; i++) {
        stet_value v = stet_value_at(list, i);
        char name[32];
        if (!is_number(v)) {
            snprintf(name, sizeof name, "element %zu", i);
            status = ref_expected(err, name, "a number", v);
        } else {
            status = step(total, v, &total, err);
        }
    }
    stet_value_release(list);
    if (status == STET_OK)
        *out = total;
    return status;
}

static stet_status add(ref_call *call, stet_value *out, stet_error *err) {
    return fold(call, 0, plus, out, err);
}
const ref_row ref_row_add = {"add", "values...", add, NULL, NULL};
const ref_row ref_row_sum = {"sum", "values...", add, NULL, NULL};

static stet_status multiply(ref_call *call, stet_value *out, stet_error *err) {
    return fold(call, 1, times, out, err);
}
const ref_row ref_row_multiply = {"multiply", "values...", multiply, NULL, NULL};

static stet_status subtract(ref_call *call, stet_value *out, stet_error *err) {
    stet_value a, b;
    stet_status status = two(call, &a, &b, err);
    return status == STET_OK ? minus(a, b, out, err) : status;
}
const ref_row ref_row_subtract = {"subtract", "a b", subtract, NULL, NULL};

static stet_status divide(ref_call *call, stet_value *out, stet_error *err) {
    stet_value a, b;
    stet_status status = two(call, &a, &b, err);
    if (status != STET_OK)
        return status;
    if (stet_value_as_double(b) == 0)
        return stet_fail(err, STET_INVALID, "division by zero");
    if (both_int(a, b)) {
        int64_t x = stet_value_as_int(a), y = stet_value_as_int(b);
        if (y == -1)
            return minus(stet_value_int(0), a, out, err);
        if (x % y == 0) {
            *out = stet_value_int(x / y);
            return STET_OK;
        }
    }
    return stet_value_double(stet_value_as_double(a) / stet_value_as_double(b), out, err);
}
const ref_row ref_row_divide = {"divide", "a b", divide, NULL, NULL};

static stet_status modulo(ref_call *call, stet_value *out, stet_error *err) {
    stet_value a, b;
    stet_status status = two(call, &a, &b, err);
    if (status != STET_OK)
        return status;
    if (stet_value_as_double(b) == 0)
        return stet_fail(err, STET_INVALID, "division by zero");
    if (both_int(a, b)) {
        *out = stet_value_int(stet_value_as_int(b) == -1 ? 0 : stet_value_as_int(a) % stet_value_as_int(b));
        return STET_OK;
    }
    return stet_value_double(fmod(stet_value_as_double(a), stet_value_as_double(b)), out, err);
}
const ref_row ref_row_modulo = {"modulo", "a b", modulo, NULL, NULL};

static stet_status power(ref_call *call, stet_value *out, stet_error *err) {
    stet_value a, b;
    stet_status status = two(call, &a, &b, err);
    if (status != STET_OK)
        return status;
    if (!both_int(a, b) || stet_value_as_int(b) < 0)
        return stet_value_double(pow(stet_value_as_double(a), stet_value_as_double(b)), out, err);
    int64_t base = stet_value_as_int(a), exponent = stet_value_as_int(b), r = 1;
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(r, base, &r))
            return overflow(err);
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
            return overflow(err);
    }
    *out = stet_value_int(r);
    return STET_OK;
}
const ref_row ref_row_power = {"power", "a b", power, NULL, NULL};

static stet_status negate(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = number(call, "value", &v, err);
    return status == STET_OK ? minus(stet_value_int(0), v, out, err) : status;
}
const ref_row ref_row_negate = {"negate", "value", negate, NULL, NULL};

static stet_status magnitude(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = number(call, "value", &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_as_double(v) < 0)
        return minus(stet_value_int(0), v, out, err);
    *out = v;
    return STET_OK;
}
const ref_row ref_row_abs = {"abs", "value", magnitude, NULL, NULL};

static stet_status by(ref_call *call, double (*f)(double), stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = number(call, "value", &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) == STET_TYPE_INT) {
        *out = v;
        return STET_OK;
    }
    return stet_value_double(f(stet_value_as_double(v)), out, err);
}

static stet_status run_floor(ref_call *call, stet_value *out, stet_error *err) {
    return by(call, floor, out, err);
}
const ref_row ref_row_floor = {"floor", "value", run_floor, NULL, NULL};

static stet_status run_ceil(ref_call *call, stet_value *out, stet_error *err) {
    return by(call, ceil, out, err);
}
const ref_row ref_row_ceil = {"ceil", "value", run_ceil, NULL, NULL};

static stet_status run_round(ref_call *call, stet_value *out, stet_error *err) {
    stet_value digits, v;
    stet_status status = ref_arg(call, "digits", STET_RECURSIVE, &digits, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(digits) == STET_TYPE_NULL)
        return by(call, round, out, err);
    if (stet_value_type(digits) != STET_TYPE_INT || stet_value_as_int(digits) < 0 || stet_value_as_int(digits) > 15)
        return stet_fail(err, STET_INVALID, "digits: expected an integer from 0 to 15");
    status = number(call, "value", &v, err);
    if (status != STET_OK)
        return status;
    double scale = pow(10, (double)stet_value_as_int(digits));
    return stet_value_double(round(stet_value_as_double(v) * scale) / scale, out, err);
}
const ref_row ref_row_round = {"round", "value digits?", run_round, NULL, NULL};

static stet_status run_sqrt(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = number(call, "value", &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_as_double(v) < 0)
        return stet_fail(err, STET_INVALID, "the square root of a negative number");
    return stet_value_double(sqrt(stet_value_as_double(v)), out, err);
}
const ref_row ref_row_sqrt = {"sqrt", "value", run_sqrt, NULL, NULL};

static stet_status compared(ref_call *call, int *out, stet_error *err) {
    stet_value a, b;
    stet_status status = ref_arg(call, "a", STET_RECURSIVE, &a, err);
    if (status == STET_OK)
        status = ref_arg(call, "b", STET_RECURSIVE, &b, err);
    if (status == STET_OK)
        *out = stet_value_compare(a, b);
    return status;
}

#define COMPARISON(function, text, condition)                                                                          \
    static stet_status function(ref_call *call, stet_value *out, stet_error *err) {                                    \
        int c;                                                                                                         \
        stet_status status = compared(call, &c, err);                                                                  \
        if (status == STET_OK)                                                                                         \
            *out = stet_value_bool(condition);                                                                         \
        return status;                                                                                                 \
    }                                                                                                                  \
    const ref_row ref_row_##text = {#text, "a b", function, NULL, NULL};

COMPARISON(is_equal, equal, c == 0)
COMPARISON(is_not_equal, notEqual, c != 0)
COMPARISON(is_less, less, c < 0)
COMPARISON(is_less_or_equal, lessOrEqual, c <= 0)
COMPARISON(is_greater, greater, c > 0)
COMPARISON(is_greater_or_equal, greaterOrEqual, c >= 0)

static stet_status compare(ref_call *call, stet_value *out, stet_error *err) {
    int c;
    stet_status status = compared(call, &c, err);
    if (status == STET_OK)
        *out = stet_value_int((c > 0) - (c < 0));
    return status;
}
const ref_row ref_row_compare = {"compare", "a b", compare, NULL, NULL};

/* One after the other, and no further than the answer needs: `stop` is the truth that ends it. */
static stet_status chain(ref_call *call, bool stop, stet_value *out, stet_error *err) {
    bool answer = !stop;
    stet_status status = STET_OK;
    if (stet_value_type(call->bindings) == STET_TYPE_OBJECT && stet_value_find(call->bindings, "values", 6, NULL)) {
        stet_value list;
        status = ref_rest(call, &list, err);
        if (status != STET_OK)
            return status;
        for (size_t i = 0; i < stet_value_count(list); i++)
            if (ref_truth(stet_value_at(list, i)) == stop)
                answer = stop;
        stet_value_release(list);
    } else {
        size_t n = stet_value_count(call->bindings);
        bool object = stet_value_type(call->bindings) == STET_TYPE_OBJECT;
        for (size_t i = 0; i < n && answer != stop && status == STET_OK; i++) {
            stet_path path = STET_PATH_INIT;
            stet_value v = stet_value_null();
            if (object) {
                size_t len;
                const char *key = stet_value_key_at(call->bindings, i, &len);
                stet_path_push_n(&path, key, len);
            } else {
                stet_path_push_index(&path, i);
            }
            status = stet_run_read(call->run, stet_path_ref(&path), STET_SHALLOW, &v, err);
            if (status == STET_NOT_FOUND) {
                if (err)
                    stet_error_clear(err);
                v = stet_value_null();
                status = STET_OK;
            }
            if (status == STET_OK && ref_truth(v) == stop)
                answer = stop;
            stet_path_release(&path);
        }
    }
    if (status == STET_OK)
        *out = stet_value_bool(answer);
    return status;
}

static stet_status run_and(ref_call *call, stet_value *out, stet_error *err) {
    return chain(call, false, out, err);
}
const ref_row ref_row_and = {"and", "values...", run_and, "*", NULL};

static stet_status run_or(ref_call *call, stet_value *out, stet_error *err) {
    return chain(call, true, out, err);
}
const ref_row ref_row_or = {"or", "values...", run_or, "*", NULL};

static stet_status run_not(ref_call *call, stet_value *out, stet_error *err) {
    stet_value v;
    stet_status status = ref_arg(call, "value", STET_SHALLOW, &v, err);
    if (status == STET_OK)
        *out = stet_value_bool(!ref_truth(v));
    return status;
}
const ref_row ref_row_not = {"not", "value", run_not, NULL, NULL};

static stet_status run_xor(ref_call *call, stet_value *out, stet_error *err) {
    stet_value a, b;
    stet_status status = ref_arg(call, "a", STET_SHALLOW, &a, err);
    if (status == STET_OK)
        status = ref_arg(call, "b", STET_SHALLOW, &b, err);
    if (status == STET_OK)
        *out = stet_value_bool(ref_truth(a) != ref_truth(b));
    return status;
}
const ref_row ref_row_xor = {"xor", "a b", run_xor, NULL, NULL};

static stet_status count(ref_call *call, stet_value *out, stet_error *err) {
    bool named =
        stet_value_type(call->bindings) == STET_TYPE_OBJECT && stet_value_find(call->bindings, "values", 6, NULL);
    if (!named) {
        *out = stet_value_int((int64_t)stet_value_count(call->bindings));
        return STET_OK;
    }
    stet_value v;
    stet_status status = ref_arg(call, "values", STET_SHALLOW, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) != STET_TYPE_ARRAY && stet_value_type(v) != STET_TYPE_OBJECT)
        return ref_expected(err, "values", "an array or an object", v);
    *out = stet_value_int((int64_t)stet_value_count(v));
    return STET_OK;
}
const ref_row ref_row_count = {"count", "values...", count, NULL, NULL};

static stet_status extreme(ref_call *call, int sign, stet_value *out, stet_error *err) {
    stet_value list;
    stet_status status = ref_rest(call, &list, err);
    if (status != STET_OK)
        return status;
    stet_value best = stet_value_null();
    for (size_t i = 0; i < stet_value_count(list); i++)
        if (i == 0 || stet_value_compare(stet_value_at(list, i), best) * sign > 0)
            best = stet_value_at(list, i);
    *out = stet_value_retain(best);
    stet_value_release(list);
    return STET_OK;
}

static stet_status run_min(ref_call *call, stet_value *out, stet_error *err) {
    return extreme(call, -1, out, err);
}
const ref_row ref_row_min = {"min", "values...", run_min, NULL, NULL};

static stet_status run_max(ref_call *call, stet_value *out, stet_error *err) {
    return extreme(call, 1, out, err);
}
const ref_row ref_row_max = {"max", "values...", run_max, NULL, NULL};

static stet_status mean(ref_call *call, stet_value *out, stet_error *err) {
    stet_value list;
    stet_status status = ref_rest(call, &list, err);
    if (status != STET_OK)
        return status;
    size_t n = stet_value_count(list);
    double total = 0;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "element %zu", i);
        if (!is_number(stet_value_at(list, i)))
            status = ref_expected(err, name, "a number", stet_value_at(list, i));
        total += stet_value_as_double(stet_value_at(list, i));
    }
    stet_value_release(list);
    if (status != STET_OK)
        return status;
    if (n == 0) {
        *out = stet_value_null();
        return STET_OK;
    }
    return stet_value_double(total / (double)n, out, err);
}
const ref_row ref_row_mean = {"mean", "values...", mean, NULL, NULL};
