package proctree

import (
	"testing"
)

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) (b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 42 9 9 9"))
	f.Add([]byte("1 (sh) R"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, ok := parseStat(5, raw); ok && p.PID != 5 {
			t.Fatal("a number changed")
		}
	})
}

func TestStatOfStrangeNames(t *testing.T) {
	p, ok := parseStat(7, []byte("7 (a) S 9 (b) Z 3 4 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 42 9 9 9"))
	if !ok || p.parent != 3 || p.group != 4 || p.session != 5 || p.Start != 42 || !p.dead() {
		t.Errorf("%+v, %v", p, ok)
	}
}

// A buffer on the heap would be garbage for each process on the machine, in each scan.
func TestBufferOfStatIsNotOnTheHeap(t *testing.T) {
	allocated := testing.AllocsPerRun(100, func() {
		var buf [512]byte
		n := copy(buf[:], "1 (a) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 42 9 9 9")
		if _, ok := parseStat(1, buf[:n]); !ok {
			t.Fatal("the line was not parsed")
		}
	})
	if allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// Runs in containers as a static binary, so it imports nothing of the bot.
func TestOOMIsCounted(t *testing.T) {
	if got := oomKills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"); got != 2 {
		t.Errorf("%d", got)
	}
	if got := oomKills("nothing"); got != 0 {
		t.Errorf("%d", got)
	}
}
