package proctree

// Marked returns the live processes whose environment contains at least one of marks ("NAME=value"). It reads all
// processes of the machine.
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

// Children returns the live children of a process.
func Children(pid int) (ids []ID, err error) {
	err = eachProc(func(p procStat) {
		if p.parent == pid && !p.dead() {
			ids = append(ids, p.ID)
		}
	})
	return ids, err
}
