// The part of sqlite3.h that a VFS needs. The layouts are part of SQLite's stable interface; see https://sqlite.org/vfs.html.
#pragma once

typedef long long sqlite3_int64;
typedef struct sqlite3_file sqlite3_file;
typedef struct sqlite3_io_methods sqlite3_io_methods;
typedef struct sqlite3_vfs sqlite3_vfs;

struct sqlite3_file {
	const sqlite3_io_methods *methods;
};

struct sqlite3_io_methods {
	int version;
	int (*close)(sqlite3_file *);
	int (*read)(sqlite3_file *, void *, int size, sqlite3_int64 offset);
	int (*write)(sqlite3_file *, const void *, int size, sqlite3_int64 offset);
	int (*truncate)(sqlite3_file *, sqlite3_int64 size);
	int (*sync)(sqlite3_file *, int flags);
	int (*size)(sqlite3_file *, sqlite3_int64 *);
	int (*lock)(sqlite3_file *, int);
	int (*unlock)(sqlite3_file *, int);
	int (*check_reserved)(sqlite3_file *, int *);
	int (*control)(sqlite3_file *, int, void *);
	int (*sector_size)(sqlite3_file *);
	int (*characteristics)(sqlite3_file *);
	// version 2
	int (*shm_map)(sqlite3_file *, int page, int page_size, int extend, void volatile **);
	int (*shm_lock)(sqlite3_file *, int offset, int n, int flags);
	void (*shm_barrier)(sqlite3_file *);
	int (*shm_unmap)(sqlite3_file *, int remove);
};

struct sqlite3_vfs {
	int version;
	int file_size;
	int max_path;
	sqlite3_vfs *next;
	const char *name;
	void *data;
	int (*open)(sqlite3_vfs *, const char *, sqlite3_file *, int flags, int *out_flags);
	int (*remove)(sqlite3_vfs *, const char *, int sync_directory);
	int (*access)(sqlite3_vfs *, const char *, int flags, int *);
	int (*full_path)(sqlite3_vfs *, const char *, int, char *);
	void *(*dl_open)(sqlite3_vfs *, const char *);
	void (*dl_error)(sqlite3_vfs *, int, char *);
	void (*(*dl_sym)(sqlite3_vfs *, void *, const char *))(void);
	void (*dl_close)(sqlite3_vfs *, void *);
	int (*randomness)(sqlite3_vfs *, int, char *);
	int (*sleep)(sqlite3_vfs *, int microseconds);
	int (*current_time)(sqlite3_vfs *, double *);
	int (*last_error)(sqlite3_vfs *, int, char *);
	// version 2
	int (*current_time_ms)(sqlite3_vfs *, sqlite3_int64 *);
};

int sqlite3_initialize(void);
sqlite3_int64 sqlite3_memory_used(void);
sqlite3_vfs *sqlite3_vfs_find(const char *);
int sqlite3_vfs_register(sqlite3_vfs *, int is_default);

// Result codes and flags.
enum {
	ok = 0,
	full = 13,
	cannot_open = 14,
	ioerr_read = 10 | 1 << 8,
	ioerr_write = 10 | 3 << 8,
	ioerr_fsync = 10 | 4 << 8,
	ioerr_truncate = 10 | 6 << 8,
	ioerr_fstat = 10 | 7 << 8,
	ioerr_lock = 10 | 15 << 8,
	ioerr_delete = 10 | 10 << 8,
	ioerr_shmmap = 10 | 21 << 8,

	open_create = 0x4,
	open_main_journal = 0x800,
	open_super_journal = 0x4000,
	open_wal = 0x80000,
};

// Kinds of calls that Go may make fail; see Op.
enum { op_open, op_read, op_write, op_truncate, op_sync, op_remove };

int sim_register(void);
