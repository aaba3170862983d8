/* file.c - whole files, directories, names, copies, and what kind of file system a path lies on. */

#include "../expect.h"

#include <errno.h>
#include <pthread.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "../faults.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect_content(const char *path, const char *text) {
    stet_buf b = STET_BUF(0);
    OK(stet_file_read(path, 0, &b, &err));
    assert_string_equal(stet_buf_cstr(&b), text);
    stet_buf_release(&b);
}

static void reading(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    put("r", "hello");
    stet_buf_str(&b, ">");
    OK(stet_file_read("r", 5, &b, &err)); /* exactly the maximum */
    assert_string_equal(b.data, ">hello");
    FAILS(stet_file_read("r", 4, &b, &err), STET_LIMIT, "r: 5 bytes");
    assert_string_equal(b.data, ">hello"); /* as it was */
    FAILS(stet_file_read("absent", 0, &b, &err), STET_NOT_FOUND, "absent");
    FAILS(stet_file_read(".", 0, &b, &err), STET_INVALID, "directory");
    FAILS(stet_file_read("/dev/zero", 0, &b, &err), STET_INVALID, "/dev/zero");
    assert_int_equal(mkfifo("fifo", 0644), 0);
    FAILS(stet_file_read("fifo", 0, &b, &err), STET_INVALID, "fifo"); /* and does not wait for a writer */
    FAILS(stet_file_read("/proc/self/status", 10, &b, &err), STET_LIMIT, "10 bytes"); /* says it has size 0 */
    stet_buf_clear(&b);
    OK(stet_file_read("/proc/self/status", 0, &b, &err));
    assert_true(b.len > 100);
    stet_buf_release(&b);
    put("empty", "");
    OK(stet_file_read("empty", 0, &b, &err));
    assert_int_equal(b.len, 0);
    stet_buf small = STET_BUF(3);
    FAILS(stet_file_read("r", 0, &small, &err), STET_LIMIT, "r");
    stet_buf_release(&small);
    stet_buf_release(&b);
}

static void replacing_and_creating(void **state) {
    (void)state;
    OK(stet_file_replace("x", "one", 3, 0644, &err));
    expect_content("x", "one");
    OK(stet_file_replace("x", "second", 6, 0600, &err));
    expect_content("x", "second");
    struct stat st;
    assert_int_equal(stat("x", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    FAILS(stet_file_create("x", "no", 2, 0644, &err), STET_CONFLICT, "x: exists");
    expect_content("x", "second");
    OK(stet_file_create("y", "", 0, 0644, &err));
    expect_content("y", "");
    FAILS(stet_file_replace("no/such/dir/x", "a", 1, 0644, &err), STET_NOT_FOUND, "no/such/dir/x");
    assert_int_equal(mkdir("dir", 0755), 0);
    FAILS(stet_file_replace("dir", "a", 1, 0644, &err), STET_IO, "dir");
    /* A symlink is replaced, not followed. */
    put("target", "target");
    assert_int_equal(symlink("target", "link"), 0);
    OK(stet_file_replace("link", "new", 3, 0644, &err));
    expect_content("target", "target");
    expect_content("link", "new");
    assert_int_equal(faults_names(".", ".stet-temp"), 0);
}

static void appending(void **state) {
    (void)state;
    OK(stet_file_append("log", "a\n", 2, true, &err));
    OK(stet_file_append("log", "b\n", 2, false, &err));
    expect_content("log", "a\nb\n");
    FAILS(stet_file_append("nowhere/log", "a", 1, true, &err), STET_NOT_FOUND, "nowhere/log");
    assert_int_equal(symlink("log", "loglink"), 0);
    FAILS(stet_file_append("loglink", "x", 1, true, &err), STET_IO, "loglink");
    expect_content("log", "a\nb\n");
}

static void directories(void **state) {
    (void)state;
    OK(stet_file_mkdirs("p/q//r/", 0755, &err));
    OK(stet_file_mkdirs("p/q/r", 0755, &err));
    put("p/file", "x");
    FAILS(stet_file_mkdirs("p/file", 0755, &err), STET_INVALID, "not a directory");
    FAILS(stet_file_mkdirs("p/file/below", 0755, &err), STET_IO, "p/file/below");
    FAILS(stet_file_mkdirs("", 0755, &err), STET_INVALID, "empty");
    put("p/b", "");
    put("p/B", "");
    stet_names names = {0};
    OK(stet_file_list("p", &names, &err));
    assert_int_equal(names.len, 4);
    assert_string_equal(names.at[0], "B");
    assert_string_equal(names.at[1], "b");
    assert_string_equal(names.at[3], "q");
    stet_names_release(&names);
    OK(stet_file_list("p/q/r", &names, &err));
    assert_int_equal(names.len, 0);
    stet_names_release(&names);
    FAILS(stet_file_list("absent", &names, &err), STET_NOT_FOUND, "absent");
    OK(stet_file_remove("p/b", &err));
    OK(stet_file_remove("p/b", &err));
    OK(stet_file_remove("p/file/below", &err));
    FAILS(stet_file_remove("p/q", &err), STET_IO, "p/q");
    assert_true(stet_file_exists("p/B"));
    assert_false(stet_file_exists("p/b"));
    OK(stet_file_sync_dir("p", &err));
    OK(stet_file_sync_parent("p/B", &err));
}

static void trees_are_removed_without_following(void **state) {
    (void)state;
    OK(stet_file_mkdirs("outside", 0755, &err));
    put("outside/kept", "x");
    OK(stet_file_mkdirs("tree/a/b", 0755, &err));
    OK(stet_file_mkdirs("tree/locked/in", 0755, &err));
    put("tree/locked/in/file", "x");
    assert_int_equal(chmod("tree/locked", 0555), 0);
    assert_int_equal(symlink("../outside", "tree/link"), 0);
    assert_int_equal(symlink("nowhere", "tree/a/dangling"), 0);
    OK(stet_file_remove_tree("tree", &err));
    assert_false(stet_file_exists("tree"));
    assert_true(stet_file_exists("outside/kept"));
    assert_int_equal(symlink("outside", "to-outside"), 0);
    OK(stet_file_remove_tree("to-outside", &err)); /* the link alone */
    assert_true(stet_file_exists("outside/kept"));
    OK(stet_file_remove_tree("absent", &err));
    OK(stet_file_remove_tree("outside/kept", &err));

    /* Deeper than descriptors are to be had. */
    int before = faults_descriptors();
    char start[4096];
    assert_non_null(getcwd(start, sizeof start));
    assert_int_equal(mkdir("deep", 0755), 0);
    assert_int_equal(chdir("deep"), 0);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdir("d", 0755), 0);
        if (i % 100 == 0)
            put("f", "x");
        assert_int_equal(chdir("d"), 0);
    }
    assert_int_equal(chdir(start), 0);
    OK(stet_file_remove_tree("deep", &err));
    assert_false(stet_file_exists("deep"));
    assert_int_equal(faults_descriptors(), before);
    /* And wider than one readdir buffer. */
    assert_int_equal(mkdir("wide", 0755), 0);
    for (int i = 0; i < 3000; i++) {
        char name[64];
        snprintf(name, sizeof name, "wide/%d", i);
        put(name, "");
    }
    OK(stet_file_remove_tree("wide", &err));
    assert_false(stet_file_exists("wide"));
}

static void expect_join(const char *dir, const char *name, const char *joined) {
    char *p = stet_file_join(dir, name);
    assert_string_equal(p, joined);
    stet_free(p);
}

static void expect_dirname(const char *path, const char *dir) {
    char *p = stet_file_dirname(path);
    assert_string_equal(p, dir);
    stet_free(p);
}

static void names(void **state) {
    (void)state;
    expect_join("a", "b", "a/b");
    expect_join("a/", "b", "a/b");
    expect_join("", "b", "b");
    expect_join("a", "/b", "/b");
    expect_join("/", "b", "/b");
    expect_dirname("a/b", "a");
    expect_dirname("a", ".");
    expect_dirname("/a", "/");
    expect_dirname("/", "/");
    expect_dirname("a//b//", "a");
    expect_dirname("", ".");
    assert_string_equal(stet_file_basename("a/b"), "b");
    assert_string_equal(stet_file_basename("b"), "b");
    assert_string_equal(stet_file_basename("a/"), "");
}

static bool inside(const char *root, const char *path) {
    bool in = false;
    OK(stet_file_inside(root, path, &in, &err));
    return in;
}

static void inside_or_not(void **state) {
    (void)state;
    OK(stet_file_mkdirs("in/root/sub", 0755, &err));
    OK(stet_file_mkdirs("in/rootless", 0755, &err));
    put("in/root/file", "");
    assert_true(inside("in/root", "in/root"));
    assert_true(inside("in/root", "in/root/file"));
    assert_true(inside("in/root", "in/root/new/file"));
    assert_true(inside("in/root", "in/root/sub/../file"));
    assert_false(inside("in/root", "in/root/../rootless"));
    assert_false(inside("in/root", "in/rootless"));
    assert_false(inside("in/root", "in/rootless/new"));
    assert_false(inside("in/root", "in/root/new/../../../elsewhere"));
    assert_int_equal(symlink("../rootless", "in/root/out"), 0);
    assert_int_equal(symlink("root/sub", "in/back"), 0);
    assert_int_equal(symlink("/nowhere/at/all", "in/root/dangling"), 0);
    assert_false(inside("in/root", "in/root/out"));
    assert_false(inside("in/root", "in/root/out/new"));
    assert_true(inside("in/root", "in/back/new"));
    assert_false(inside("in/root", "in/root/dangling"));
    assert_false(inside("in/root", "in/root/dangling/x"));
    assert_true(inside("/", "/new"));
    bool in;
    FAILS(stet_file_inside("absent", "x", &in, &err), STET_NOT_FOUND, "absent");
    char *real;
    OK(stet_file_realpath("in/back", &real, &err));
    assert_string_equal(strrchr(real, '/'), "/sub");
    stet_free(real);
    FAILS(stet_file_realpath("absent", &real, &err), STET_NOT_FOUND, "absent");
}

static void temp_names_tell_whose_they_are(void **state) {
    (void)state;
    char *a = stet_file_temp_name("in", "pre.fix"), *b = stet_file_temp_name("in", "pre.fix");
    assert_string_not_equal(a, b);
    assert_int_equal(strncmp(a, "in/pre.fix.", 11), 0);
    struct stat now = {.st_mtime = stet_clock_ms() / 1000}, old = {.st_mtime = now.st_mtime - 1000};
    assert_false(stet_file_temp_is_dead(a, 100, &now));
    assert_true(stet_file_temp_is_dead(a, 100, &old));
    /* The same pid, but of an earlier process; and a pid that nobody has. */
    char other[128];
    snprintf(other, sizeof other, "x.%d.%llu.0123456789abcdef", (int)getpid(),
             (unsigned long long)stet_proc_self().start - 1);
    assert_true(stet_file_temp_is_dead(other, 100, &now));
    assert_true(stet_file_temp_is_dead("x.999999999.5.0123456789abcdef", 100, &now));
    /* What is no temp name is somebody else's, however old. */
    for (const char *const *p = (const char *const[]){"", "x", "a.b.c", "x.1.2.3", "x.1.2.0123456789ABCDEF", "...",
                                                      "1.2.0123456789abcdef", "x.-5.1.0123456789abcdef", NULL};
         *p; p++) {
        assert_false(stet_file_temp_is_dead(*p, 100, &now));
        assert_false(stet_file_temp_is_dead(*p, 100, &old));
    }
    stet_free(a);
    stet_free(b);
}

static void copies(void **state) {
    (void)state;
    stet_copy_how how;
    put("from", "some bytes");
    OK(stet_file_copy("from", "copy", 0640, false, &how, &err));
    assert_int_not_equal(how, STET_COPY_HARDLINK);
    expect_content("copy", "some bytes");
    struct stat a, b;
    assert_int_equal(stat("copy", &b), 0);
    assert_int_equal(b.st_mode & 0777, 0640);
    FAILS(stet_file_copy("from", "copy", 0644, false, &how, &err), STET_CONFLICT, "copy");
    FAILS(stet_file_copy("from", "copy", 0644, true, &how, &err), STET_CONFLICT, "copy");
    expect_content("copy", "some bytes");
    OK(stet_file_copy("from", "hard", 0644, true, &how, &err));
    assert_int_equal(stat("from", &a), 0);
    assert_int_equal(stat("hard", &b), 0);
    assert_true(how == STET_COPY_REFLINK || (how == STET_COPY_HARDLINK && a.st_ino == b.st_ino));
    /* Of a symlink the file that it leads to is copied, never the link. */
    assert_int_equal(symlink("from", "fromlink"), 0);
    OK(stet_file_copy("fromlink", "through", 0644, true, NULL, &err));
    assert_int_equal(lstat("through", &b), 0);
    assert_true(S_ISREG(b.st_mode));
    FAILS(stet_file_copy("absent", "z", 0644, false, &how, &err), STET_NOT_FOUND, "absent");
    FAILS(stet_file_copy(".", "z", 0644, false, &how, &err), STET_INVALID, ".");
    FAILS(stet_file_copy("from", "nowhere/z", 0644, false, &how, &err), STET_NOT_FOUND, "nowhere/z");
    assert_false(stet_file_exists("z"));

    /* Holes stay holes; the content is the same. */
    int fd = open("sparse", O_RDWR | O_CREAT, 0644);
    assert_int_equal(pwrite(fd, "head", 4, 0), 4);
    assert_int_equal(pwrite(fd, "middle", 6, 8 << 20), 6);
    assert_int_equal(ftruncate(fd, 20 << 20), 0);
    close(fd);
    OK(stet_file_copy("sparse", "sparse-copy", 0644, false, &how, &err));
    stet_hash ha, hb;
    uint64_t size;
    OK(stet_file_hash("sparse", &ha, NULL, &err));
    OK(stet_file_hash("sparse-copy", &hb, &size, &err));
    assert_true(stet_hash_equal(ha, hb));
    assert_int_equal(size, 20 << 20);
    assert_int_equal(stat("sparse", &a), 0);
    assert_int_equal(stat("sparse-copy", &b), 0);
    assert_true(b.st_blocks <= a.st_blocks + 64);
}

static void hashes(void **state) {
    (void)state;
    stet_hash h;
    char hex[STET_HASH_HEX];
    uint64_t size = 9;
    put("abc", "abc");
    OK(stet_file_hash("abc", &h, &size, &err));
    stet_hash_hex(h, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(size, 3);
    put("abc", "");
    OK(stet_file_hash("abc", &h, &size, &err));
    assert_true(stet_hash_equal(h, stet_hash_of("", 0)));
    assert_int_equal(size, 0);
    FAILS(stet_file_hash("absent", &h, &size, &err), STET_NOT_FOUND, "absent");
    FAILS(stet_file_hash(".", &h, &size, &err), STET_INVALID, ".");
}

static long fake_type;
static int fake_statfs(const char *path, struct statfs *out) {
    if (strcmp(path, "exists") != 0 && strcmp(path, ".") != 0) {
        errno = ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->f_type = fake_type;
    return 0;
}

static void network_file_systems(void **state) {
    (void)state;
    bool network = true;
    const char *name = NULL;
    OK(stet_file_is_network(".", &network, &name, &err));
    assert_false(network);
    assert_string_equal(name, "");
    OK(stet_file_is_network("/proc/self/nothing/here", &network, NULL, &err));
    assert_false(network);
    stet_file_statfs_hook = fake_statfs;
    static const struct {
        long type;
        const char *name;
    } kinds[] = {{0x6969, "NFS"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"}, {0x01021997, "9p"}, {0x00C36400, "Ceph"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        fake_type = kinds[i].type;
        OK(stet_file_is_network("exists/not/yet", &network, &name, &err));
        assert_true(network);
        assert_string_equal(name, kinds[i].name);
    }
    /* FUSE alone says nothing: this directory is no sshfs by mountinfo. */
    fake_type = 0x65735546;
    OK(stet_file_is_network("x/y", &network, &name, &err));
    assert_false(network);
    fake_type = 0xEF53; /* ext4 */
    OK(stet_file_is_network("exists", &network, &name, &err));
    assert_false(network);
    stet_file_statfs_hook = NULL;
}

int main(void) {
    umask(022);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(replacing_and_creating),
        cmocka_unit_test(appending),
        cmocka_unit_test(directories),
        cmocka_unit_test(trees_are_removed_without_following),
        cmocka_unit_test(names),
        cmocka_unit_test(inside_or_not),
        cmocka_unit_test(temp_names_tell_whose_they_are),
        cmocka_unit_test(copies),
        cmocka_unit_test(hashes),
        cmocka_unit_test(network_file_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
