#include <malloc.h>

// sqlite3_config is part of SQLite. It is weak because cgo also links this file without SQLite.
__attribute__((weak)) int sqlite3_config(int option, ...);
#define CONFIG_MEMSTATUS 9 // SQLITE_CONFIG_MEMSTATUS

// configure_memory sets how SQLite allocates memory. It is too late once there are threads, or SQLite is initialized.
__attribute__((constructor)) static void configure_memory(void) {
#ifdef M_ARENA_MAX
	// Use one arena for all threads. By default, the GNU library has one for each thread, and each of them keeps freed memory.
	mallopt(M_ARENA_MAX, 1);
#endif
	// SQLite does not count its memory, because it would lock a mutex for each allocation to do so.
	if (sqlite3_config) {
		sqlite3_config(CONFIG_MEMSTATUS, 0);
	}
}

// trim_memory returns freed memory to the kernel. Without it, the GNU library returns only memory at the end of the arena.
void trim_memory(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
