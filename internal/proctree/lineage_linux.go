package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Lineage lists a process and its ancestors, the process first. If any of them ends in the meantime, Lineage returns an
// error, because the kernel then gives its children another parent. Lineage stops at an ancestor that this user may not
// see, such as another user's process if /proc is mounted with hidepid.
func Lineage(pid int) (line []ID, err error) {
	if pid <= 0 { // the process is in a namespace that we do not see
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

// Variable returns the value of a variable in the environment with which a process was started. It returns "" for an
// unset variable, and if we may not inspect the process.
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
