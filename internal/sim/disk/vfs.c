// A VFS that forwards calls to the VFS of the operating system, so that files, locks and shared memory are the same as in
// production. Before each call for a file of a simulated disk, Go decides whether the call fails, and records its changes.
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "vfs.h"
#include "_cgo_export.h"

static sqlite3_vfs *os; // VFS of the operating system

static _Thread_local int last_error;

static int failed(int result, int no) {
	last_error = errno = no;
	return result;
}

// A file of a simulated disk. The file of the operating system's VFS follows it in memory; see below.
typedef struct {
	sqlite3_file base;
	sqlite3_int64 handle; // Go's number for the file
} sim_file;

static sqlite3_file *below(sqlite3_file *f) { return (sqlite3_file *)((sim_file *)f + 1); }

#define CALL(f, method, ...) below(f)->methods->method(below(f), ##__VA_ARGS__)

static int decide(sqlite3_file *f, int op, sqlite3_int64 offset, int size, const void *data, int *allowed) {
	return simCall(((sim_file *)f)->handle, op, offset, size, (void *)data, allowed);
}

static int sim_close(sqlite3_file *f) {
	simClose(((sim_file *)f)->handle);
	return CALL(f, close);
}

static int sim_read(sqlite3_file *f, void *data, int size, sqlite3_int64 offset) {
	int no = decide(f, op_read, offset, size, NULL, NULL);
	return no ? failed(ioerr_read, no) : CALL(f, read, data, size, offset);
}

static int sim_write(sqlite3_file *f, const void *data, int size, sqlite3_int64 offset) {
	int allowed = size, no = decide(f, op_write, offset, size, data, &allowed);
	int result = allowed > 0 ? CALL(f, write, data, allowed, offset) : ok;
	if (no) {
		return failed(no == ENOSPC ? full : ioerr_write, no);
	}
	return result;
}

static int sim_truncate(sqlite3_file *f, sqlite3_int64 size) {
	int no = decide(f, op_truncate, size, 0, NULL, NULL);
	return no ? failed(ioerr_truncate, no) : CALL(f, truncate, size);
}

// sim_sync does not sync the real file, because Go simulates the content of the disk after a sync.
static int sim_sync(sqlite3_file *f, int flags) {
	int no = decide(f, op_sync, 0, 0, NULL, NULL);
	return no ? failed(ioerr_fsync, no) : ok;
}

static int sim_size(sqlite3_file *f, sqlite3_int64 *size) {
	return simDead(((sim_file *)f)->handle) ? failed(ioerr_fstat, EIO) : CALL(f, size, size);
}

static int sim_lock(sqlite3_file *f, int level) {
	return simDead(((sim_file *)f)->handle) ? failed(ioerr_lock, EIO) : CALL(f, lock, level);
}

static int sim_unlock(sqlite3_file *f, int level) { return CALL(f, unlock, level); }
static int sim_check_reserved(sqlite3_file *f, int *out) { return CALL(f, check_reserved, out); }
static int sim_control(sqlite3_file *f, int op, void *arg) { return CALL(f, control, op, arg); }
static int sim_sector_size(sqlite3_file *f) { return CALL(f, sector_size); }
static int sim_characteristics(sqlite3_file *f) { return CALL(f, characteristics); }

static int sim_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
	return simDead(((sim_file *)f)->handle) ? failed(ioerr_shmmap, EIO) : CALL(f, shm_map, page, size, extend, out);
}

static int sim_shm_lock(sqlite3_file *f, int offset, int n, int flags) { return CALL(f, shm_lock, offset, n, flags); }
static void sim_shm_barrier(sqlite3_file *f) { CALL(f, shm_barrier); }
static int sim_shm_unmap(sqlite3_file *f, int remove) { return CALL(f, shm_unmap, remove); }

static const sqlite3_io_methods methods = {
	2, // version 3 adds memory-mapped files, whose changes Go would not see
	sim_close, sim_read, sim_write, sim_truncate, sim_sync, sim_size, sim_lock, sim_unlock, sim_check_reserved, sim_control,
	sim_sector_size, sim_characteristics, sim_shm_map, sim_shm_lock, sim_shm_barrier, sim_shm_unmap,
};

static int sim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
	sqlite3_int64 handle = 0;
	f->methods = NULL;
	if (name) {
		// When SQLite syncs a new log or journal for the first time, it also syncs the directory.
		int journal = flags & open_create && flags & (open_main_journal | open_super_journal | open_wal);
		int no = simOpen((char *)name, (flags & open_create) != 0, journal != 0, &handle);
		if (no) {
			return failed(cannot_open, no);
		}
	}
	if (!handle) {
		return os->open(os, name, f, flags, out);
	}
	sim_file *s = (sim_file *)f;
	s->handle = handle;
	int result = os->open(os, name, below(f), flags, out);
	if (result != ok) {
		simClose(handle);
		return failed(result, errno);
	}
	f->methods = &methods;
	return ok;
}

static int sim_remove(sqlite3_vfs *vfs, const char *name, int sync_directory) {
	int ours = 0, no = simRemove((char *)name, sync_directory, &ours);
	if (no) {
		return failed(ioerr_delete, no);
	}
	return os->remove(os, name, ours ? 0 : sync_directory);
}

static int sim_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) { return os->access(os, name, flags, out); }
static int sim_full_path(sqlite3_vfs *vfs, const char *name, int n, char *out) { return os->full_path(os, name, n, out); }
static void *sim_dl_open(sqlite3_vfs *vfs, const char *name) { return os->dl_open(os, name); }
static void sim_dl_error(sqlite3_vfs *vfs, int n, char *out) { os->dl_error(os, n, out); }
static void (*sim_dl_sym(sqlite3_vfs *vfs, void *lib, const char *name))(void) { return os->dl_sym(os, lib, name); }
static void sim_dl_close(sqlite3_vfs *vfs, void *lib) { os->dl_close(os, lib); }
static int sim_randomness(sqlite3_vfs *vfs, int n, char *out) { return os->randomness(os, n, out); }

static int sim_sleep(sqlite3_vfs *vfs, int microseconds) {
	simSleep(microseconds);
	return microseconds;
}

static int sim_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out) {
	*out = simNow() + 210866760000000LL; // milliseconds since the beginning of the Julian calendar
	return ok;
}

static int sim_time(sqlite3_vfs *vfs, double *out) {
	sqlite3_int64 ms;
	sim_time_ms(vfs, &ms);
	*out = ms / 86400000.0;
	return ok;
}

static int sim_last_error(sqlite3_vfs *vfs, int n, char *out) { return last_error ? last_error : os->last_error(os, n, out); }

int sim_register(void) {
	static sqlite3_vfs vfs = {
		2, 0, 0, NULL, "simulated", NULL, sim_open, sim_remove, sim_access, sim_full_path, sim_dl_open, sim_dl_error, sim_dl_sym,
		sim_dl_close, sim_randomness, sim_sleep, sim_time, sim_last_error, sim_time_ms,
	};
	int result = sqlite3_initialize();
	if (result != ok) {
		return result;
	}
	os = sqlite3_vfs_find(NULL);
	vfs.file_size = sizeof(sim_file) + os->file_size;
	vfs.max_path = os->max_path;
	return sqlite3_vfs_register(&vfs, 1);
}
