package supervisor

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
