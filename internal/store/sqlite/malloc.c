#include <malloc.h>

// one_arena has SQLite's memory in one place. The GNU library has an arena for each thread otherwise, each of which keeps what was
// freed in it. SQLite allocates under a lock of its own, so that nothing waits more. It is too late once there are threads.
__attribute__((constructor)) static void one_arena(void) {
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}

// trim_memory returns freed memory to the kernel. Without it, the GNU library returns only memory at the end of the arena.
void trim_memory(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
