package supervisor

import "os"

// Marked lists the live processes that carry a run's mark in their environment, wherever they went.
func Marked(run string) ([]ProcID, error) {
	procs, err := allProcs()
	if err != nil {
		return nil, err
	}
	var ids []ProcID
	for _, p := range procs {
		if yes, _ := carries(p.PID, RunVar+"="+run); yes && !p.dead() {
			ids = append(ids, p.ProcID)
		}
	}
	return ids, nil
}

// ReapOrphans takes the exit status of dead children of this process that are in another session and that
// nobody owns, and returns how many there were. owned is asked after a child was seen dead.
func ReapOrphans(owned func(pid int) bool) int {
	procs, err := allProcs()
	self, ok := readProc(os.Getpid())
	if err != nil || !ok {
		return 0 // the next round looks again
	}
	reaped := 0
	for _, p := range procs {
		if p.dead() && p.parent == self.PID && p.session != self.session && !owned(p.PID) {
			p.reap()
			reaped++
		}
	}
	return reaped
}
