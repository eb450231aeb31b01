package memory

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Release must not drop pages that differ from the file: those changed by the dynamic linker or a debugger, and
// writable ones.
func TestOnlyUnchangedPagesAreReleased(t *testing.T) {
	const smaps = `00400000-00402000 r-xp 00000000 08:02 17      /usr/bin/it
Rss:                   8 kB
Anonymous:             0 kB
00402000-00403000 r--p 00002000 08:02 17      /usr/bin/it
Anonymous:             4 kB
00403000-00404000 rw-p 00003000 08:02 17      /usr/bin/it
Anonymous:             0 kB
00404000-00405000 r--p 00003000 08:02 17      /usr/bin/it (deleted)
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 08:02 18 /lib/libc.so.6
Anonymous:             0 kB
7f0000002000-7f0000003000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7f0000003000-7f0000005000 r--p 00004000 08:02 17      /usr/bin/it
Anonymous:             0 kB
`
	got, err := cleanMappings(strings.NewReader(strings.ReplaceAll(smaps, `\x20`, " ")), "/usr/bin/it")
	want := []mapping{{0x400000, 0x402000}, {0x7f0000003000, 0x7f0000005000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%x, %v", got, err)
	}
}

// The garbage of Release would stay in memory until the next collection.
func TestMappingsOfOtherFilesAllocateNothing(t *testing.T) {
	const other = "7f0000000000-7f0000001000 r-xp 00000000 08:02 18    /lib/libc.so.6\nAnonymous:    0 kB\n"
	allocated := func(mappings int) float64 {
		smaps := strings.Repeat(other, mappings)
		return testing.AllocsPerRun(1, func() { _, _ = cleanMappings(strings.NewReader(smaps), "/usr/bin/it") })
	}
	if few, many := allocated(1), allocated(1000); many-few > 100 {
		t.Errorf("1 mapping causes %v allocations, and 1000 cause %v", few, many)
	}
}

func TestAProcessContinuesAfterRelease(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	started := Start()
	kept := strings.Repeat("kept", 1<<10)
	if err := started(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if mappings, err := programMappings(); err != nil || len(mappings) == 0 {
		t.Errorf("the program's file is not found in memory: %v", err)
	}
	if percent := debug.SetGCPercent(100); percent != 100 || len(kept) != 4<<10 {
		t.Errorf("after its start the heap may grow by %d%%", percent)
	}
}
