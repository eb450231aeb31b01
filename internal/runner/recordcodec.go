package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

// The files of a run.
const (
	recordFile = "run.json"
	logFile    = "log"
	outFile    = "out"
	errFile    = "err"
)

// record is run.json: what is known of a run before its agent is started.
type record struct {
	Version int               `json:"version"`
	ID      string            `json:"id"`
	Boot    string            `json:"boot"`
	Started time.Time         `json:"started"`
	Command []string          `json:"command"` // without secrets
	Dir     string            `json:"dir,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Limits  Limits            `json:"limits"`
	Group   string            `json:"group,omitempty"`  // the control group
	Socket  uint64            `json:"socket,omitempty"` // the inode of the end of standard input that the agent holds for us
	// OOMKills is how often the kernel had killed for want of memory in our control group when the run began; nil where
	// that is not counted.
	OOMKills *int64 `json:"oom_kills,omitempty"`
}

func readRecord(dir, id string) (rec record, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, id, recordFile))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, fmt.Errorf("read %s of run %s: %w", recordFile, id, err)
	}
	if rec.ID != id {
		return rec, fmt.Errorf("%s of run %s is of run %q", recordFile, id, rec.ID)
	}
	return rec, nil
}

func (r record) write(dir string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", recordFile, err)
	}
	return os.WriteFile(filepath.Join(dir, r.ID, recordFile), append(raw, '\n'), 0o600)
}

// The kinds of lines in a run's log, each with its fields.
const (
	lineAgent  = "agent"  // process id, start
	lineBegin  = "begin"  // request, bytes: input that is about to be written
	lineEnd    = "end"    // bytes: of that, what was written
	lineClosed = "closed" // input
	lineTime   = "time"   // offset of output, microseconds since 1970
	lineAge    = "age"    // nanoseconds since boot from which the age counts; limits
	lineLabels = "labels" // replaced
	lineBy     = "by"     // who began to end the agent
	lineFreed  = "freed"  // offset: the output before it
	lineStatus = "status" // Status
)

// history is what a log tells.
type history struct {
	agent       proctree.ID
	input       int64
	torn        bool // a write was begun and did not end
	inputClosed bool
	freed       int64
	times       []int64
	ageFrom     time.Duration
	limits      *Limits
	labels      map[string]string
	by          string
	status      *Status
}

// readHistory reads a log. A line that was cut off is no line.
func readHistory(dir, id string) (h history, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, id, logFile))
	if err != nil {
		return h, err
	}
	for line := range bytes.Lines(raw) {
		text, whole := strings.CutSuffix(string(line), "\n")
		kind, rest, _ := strings.Cut(text, " ")
		if whole {
			h.add(kind, rest)
		}
	}
	return h, nil
}

func (h *history) add(kind, rest string) {
	first, second, _ := strings.Cut(rest, " ")
	a, _ := strconv.ParseInt(first, 10, 64)
	switch kind {
	case lineAgent:
		start, _ := strconv.ParseUint(second, 10, 64)
		h.agent = proctree.ID{PID: int(a), Start: start}
	case lineBegin:
		n, _ := strconv.ParseInt(second, 10, 64)
		h.input, h.torn = h.input+n, true
	case lineEnd:
		h.torn = false
	case lineFreed:
		h.freed = max(h.freed, a)
	case lineClosed:
		h.inputClosed = true
	case lineTime:
		at, _ := strconv.ParseInt(second, 10, 64)
		h.times = append(h.times, a, at)
	case lineAge:
		h.ageFrom = time.Duration(a)
		var l Limits
		if json.Unmarshal([]byte(second), &l) == nil {
			h.limits = &l
		}
	case lineLabels:
		var labels map[string]string
		if json.Unmarshal([]byte(rest), &labels) == nil {
			h.labels = labels
		}
	case lineBy:
		h.by = rest
	case lineStatus:
		var s Status
		if json.Unmarshal([]byte(rest), &s) == nil {
			h.status = &s
		}
	}
}

// note appends a line to the log. What cannot be written is missed after the death of this runner only.
func (a *agent) note(kind string, fields ...any) {
	line := []byte(kind)
	for _, f := range fields {
		line = append(line, ' ')
		switch f := f.(type) {
		case int64:
			line = strconv.AppendInt(line, f, 10)
		case string:
			line = append(line, f...)
		default:
			raw, err := json.Marshal(f)
			if err != nil {
				return
			}
			line = append(line, raw...)
		}
	}
	_, _ = a.log.Write(append(line, '\n'))
}

// sinceBoot is a clock that cannot be set. It counts the time in which the machine sleeps.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // every Linux we run on has it
	}
	return time.Duration(t.Nano())
}
