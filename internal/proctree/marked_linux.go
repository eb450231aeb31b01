package proctree

// Marked lists the live processes whose environment contains any entry of marks ("NAME=value"). It scans all
// processes once.
func Marked(marks ...string) ([]ID, error) {
	var ids []ID
	err := eachProc(func(p procStat) {
		if p.dead() {
			return
		}
		if yes, _ := hasEnviron(p.PID, marks...); yes {
			ids = append(ids, p.ID)
		}
	})
	return ids, err
}

// Children lists the live children of a process.
func Children(pid int) (ids []ID, err error) {
	err = eachProc(func(p procStat) {
		if p.parent == pid && !p.dead() {
			ids = append(ids, p.ID)
		}
	})
	return ids, err
}
