package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Lineage returns a process and its ancestors, in this order. If this user may not see an ancestor, for example because
// of the mount option hidepid, the result ends before that ancestor. Lineage returns an error if any of the processes
// ends in the meantime, because the kernel then gives the children of the ended process another parent.
func Lineage(pid int) (line []ID, err error) {
	if pid <= 0 { // the kernel reports 0 for a process in another PID namespace
		return nil, errors.New("find the ancestors of a process: it is invisible from here")
	}
	for child := (procStat{}); pid > 0; pid = child.parent {
		p, ok := readProc(pid)
		if !ok && len(line) > 0 {
			if now, there := readProc(child.PID); there && now.ID == child.ID && now.parent == pid {
				break
			}
		}
		if !ok || len(line) > 0 && p.Start > child.Start {
			return nil, fmt.Errorf("find the ancestors of a process: process %d has ended", pid)
		}
		line, child = append(line, p.ID), p
	}
	return line, nil
}

// Variable returns the value of a variable in the environment with which a process was started. It returns "" if the
// variable is not set or the process may not be inspected.
func Variable(pid int, name string) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, found := bytes.CutPrefix(entry, []byte(name+"=")); found {
			return string(value)
		}
	}
	return ""
}
