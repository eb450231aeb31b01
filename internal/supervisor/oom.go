package supervisor

import (
	"os"
	"strconv"
	"strings"
)

// In a Place, which may have little memory and no other program in it, the kernel is to take anything before the supervisor
// of a run: that can say what was taken. So a proxy and all it starts are worth more to it, by this many thousandths of
// the memory there is, and a supervisor that has its agent is worth as much as the proxy was. See proc_pid_oom_score_adj(5).
const (
	expendable = 50
	oomMost    = 1000
	oomAdjFile = "/proc/self/oom_score_adj"
)

// expend makes this process, and what it starts from now on, more likely to be killed for want of memory. It gives what
// was so before; false where that cannot be changed.
func expend() (before int, ok bool) {
	raw, err := os.ReadFile(oomAdjFile)
	if err != nil {
		return 0, false
	}
	before, err = strconv.Atoi(strings.TrimSpace(string(raw)))
	return before, err == nil && setOOMAdj(min(before+expendable, oomMost)) == nil
}

func setOOMAdj(adj int) error { return os.WriteFile(oomAdjFile, []byte(strconv.Itoa(adj)), 0) }
