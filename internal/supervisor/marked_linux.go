package supervisor

// Marked lists the live processes that carry a run's mark in their environment, wherever they went.
func Marked(run string) ([]ProcID, error) {
	var ids []ProcID
	err := eachProc(func(p procStat) {
		if p.dead() {
			return
		}
		if yes, _ := carries(p.PID, RunVar+"="+run); yes {
			ids = append(ids, p.ProcID)
		}
	})
	return ids, err
}
