package proctree

// Marked lists the live processes whose environment has the entry mark ("NAME=value"), wherever they went.
func Marked(mark string) ([]ID, error) {
	var ids []ID
	err := eachProc(func(p procStat) {
		if p.dead() {
			return
		}
		if yes, _ := carries(p.PID, mark); yes {
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
