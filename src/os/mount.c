/* mount.c - what kind of file system a path lies on. Part of file.h.
 *
 * A FUSE file system reports only that it is FUSE. Its subtype in mountinfo tells a remote one (sshfs) from a local one
 * (an encrypted or an overlay directory), which SQLite may use.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "os/file.h"

int (*stet_file_statfs_hook)(const char *path, struct statfs *out);

static const struct {
    uint32_t magic;
    const char *name;
} network[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},          {0xFE534D42, "SMB"},    {0xFF534D42, "CIFS"},
    {0x01021997, "9p"},     {0x5346414F, "AFS"},      {0x6B414653, "AFS"},    {0x00C36400, "Ceph"},
    {0x73757245, "Coda"},   {0x564C, "NCP"},          {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"}, {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},
    {0xAAD7AAEA, "PanFS"},  {0xBACBACBC, "vmhgfs"},   {0x786F4256, "vboxsf"},
};

#define FUSE_MAGIC 0x65735546

static const char *const remote_fuse[] = {
    "sshfs",      "s3fs",     "rclone", "glusterfs", "gcsfuse",   "davfs",     "davfs2",    "ceph-fuse",
    "curlftpfs",  "smbnetfs", "goofys", "s3ql",      "blobfuse",  "blobfuse2", "juicefs",   "moosefs",
    "mfs",        "lizardfs", "hdfs",   "cvmfs2",    "seaweedfs", "mount-s3",  "onedriver", "google-drive-ocamlfuse",
    "gvfsd-fuse", "portal"};

/* The remote FUSE file system that device `dev` is, by mountinfo; NULL if it is a local one or not listed. Each line is
 *     36 35 98:0 /root /mount/point options... - fuse.sshfs source options */
static const char *fuse_subtype(dev_t dev) {
    stet_buf b = STET_BUF(16 * 1024 * 1024);
    const char *found = NULL;
    if (stet_file_read("/proc/self/mountinfo", 0, &b, NULL) == STET_OK) {
        char *rest = b.data;
        for (char *line; rest && !found && (line = strsep(&rest, "\n"));) {
            unsigned major_number, minor_number;
            const char *type = strstr(line, " - ");
            if (!type || sscanf(line, "%*d %*d %u:%u", &major_number, &minor_number) != 2 ||
                makedev(major_number, minor_number) != dev)
                continue;
            type += 3;
            const char *sub = strncmp(type, "fuse.", 5) == 0 ? type + 5 : type;
            size_t len = strcspn(sub, " ");
            for (size_t i = 0; i < sizeof remote_fuse / sizeof *remote_fuse; i++)
                if (strlen(remote_fuse[i]) == len && memcmp(remote_fuse[i], sub, len) == 0)
                    found = remote_fuse[i];
        }
    }
    stet_buf_release(&b);
    return found;
}

stet_status stet_file_is_network(const char *path, bool *out, const char **name, stet_error *err) {
    struct statfs fs;
    char *at = stet_strdup(path[0] ? path : ".");
    for (;;) {
        int r = stet_file_statfs_hook ? stet_file_statfs_hook(at, &fs) : statfs(at, &fs);
        if (r == 0)
            break;
        int error_number = errno;
        if (error_number == EINTR)
            continue;
        char *up = stet_file_dirname(at);
        bool stuck = strcmp(up, at) == 0;
        if ((error_number != ENOENT && error_number != ENOTDIR) || stuck) {
            stet_free(up);
            stet_status status = stet_fail_errno(err, error_number, "%s: cannot tell its file system", at);
            stet_free(at);
            return status;
        }
        stet_free(at);
        at = up;
    }
    const char *found = NULL;
    uint32_t magic = (uint32_t)fs.f_type;
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        if (network[i].magic == magic)
            found = network[i].name;
    struct stat st;
    if (magic == FUSE_MAGIC && stat(at, &st) == 0)
        found = fuse_subtype(st.st_dev);
    stet_free(at);
    *out = found != NULL;
    if (name)
        *name = found ? found : "";
    return STET_OK;
}
