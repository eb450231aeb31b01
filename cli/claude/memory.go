package claude

import (
	"ductor/cli"
)

// memory is what the turns of one process share: totals that Claude counts from the start of the
// process, and what was said once and need not be said again.
type memory struct {
	costUSD float64
	byModel map[cli.ModelID]cli.Usage
	denied  map[string]bool // by digest of the call's id
	denials []string        // the same in order
	warned  map[string]bool
	model   cli.ModelID // as init named it last
	mode    string      // the permission mode that Claude said it went over to; empty if it did not
}

func newMemory() *memory {
	return &memory{
		byModel: map[cli.ModelID]cli.Usage{},
		denied:  map[string]bool{},
		warned:  map[string]bool{},
	}
}

// deny notes a call that was not allowed, and says whether it is news.
func (m *memory) deny(call string) bool {
	if m.denied[call] {
		return false
	}
	m.denied[call] = true
	m.denials = append(m.denials, call)
	return true
}
