/* Whole files in memory, read only. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_map(struct file *file, const char *path, struct error *error)
{
    struct stat status;
    void *data;
    int descriptor;

    *file = (struct file){ 0 };
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(error, "%s: %s", path, strerror(errno));
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(descriptor);
        return fail(error, "%s: not a regular file", path);
    }
    if (status.st_size == 0) {
        close(descriptor);
        return fail(error, "%s: the file is empty", path);
    }
    data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (data == MAP_FAILED)
        return fail(error, "%s: cannot map %lld bytes: %s", path, (long long)status.st_size, strerror(errno));
    file->data = data;
    file->size = (size_t)status.st_size;
    return 0;
}

void file_unmap(struct file *file)
{
    if (file->data)
        munmap((void *)(size_t)file->data, file->size);
    *file = (struct file){ 0 };
}
