/* Error text: functions that can fail return 0 or -1 and say why in a caller's struct error. */
#ifndef ENGINE_ERROR_H
#define ENGINE_ERROR_H

struct error {
    char text[256];
};

/* Formats the reason into *error (which may be NULL) and returns -1, so that `return fail(...)` reads well. */
int fail(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
