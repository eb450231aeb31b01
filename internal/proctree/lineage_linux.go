package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Lineage lists a process and its ancestors, starting with the process. If any of them ends in the meantime, it
// returns an error, because the kernel then gives the children another parent. Lineage stops at an ancestor that this
// user may not see, for example a process of another user if /proc is mounted with hidepid.
func Lineage(pid int) (line []ID, err error) {
	if pid <= 0 { // the process is in another namespace
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

// Variable returns the value of a variable in the initial environment of a process. It returns "" if the variable is
// not set, or if this process may not inspect the other.
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
