package supervisor

import (
	"ductor/internal/proctree"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Exit is how an agent ended.
type Exit struct {
	// Known is false when no process saw the end: the supervisor was killed, or the client was cut off.
	Known  bool `json:"known"`
	Code   int  `json:"code"` // exit code; for a signal, minus its number
	Signal bool `json:"signal,omitempty"`
	// By is who ended it: empty for itself or somebody outside, or one of the By constants.
	By string `json:"by,omitempty"`
	// OOM is set when the kernel killed it for want of memory, as far as that can be seen; also when its end is not known.
	OOM bool `json:"oom,omitempty"`
}

// Who ended an agent.
const (
	ByStop       = "stop"       // a client's Stop or Kill
	ByMaxAge     = "max age"    // Limits.MaxAge
	ByOrphaned   = "orphaned"   // Limits.OrphanAfter
	ByTerminated = "terminated" // the supervisor was told to end
)

// Status is what is known of a run's end; status.json.
type Status struct {
	Exit
	Exited   time.Time `json:"exited,omitzero"`
	Leftover int       `json:"leftover,omitempty"` // processes the agent left running
	// OutputEnd is the offset after the last byte of output, once Ended.
	OutputEnd int64 `json:"output_end"`
	Ended     bool  `json:"ended,omitempty"`
	// Missing counts bytes of output that are not on disk any more, read or not.
	Missing int64 `json:"missing,omitempty"`
	// Trouble are the supervisor's own failures, such as a full disk.
	Trouble []string `json:"trouble,omitempty"`
	// Stderr is the last of standard error. It is not in status.json.
	Stderr string `json:"stderr,omitempty"`
}

// record is spec.json: what is known of a run from its start.
type record struct {
	Protocol
	ID         string            `json:"id"`
	Boot       string            `json:"boot"`
	Supervisor proctree.ID       `json:"supervisor"`
	Agent      proctree.ID       `json:"agent"`
	Started    time.Time         `json:"started"`
	Command    []string          `json:"command"` // without secrets
	Dir        string            `json:"dir,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Limits     Limits            `json:"limits"`
	// OOMKills is how often the kernel had killed for want of memory in the supervisor's control group when the run
	// began; nil where that is not counted.
	OOMKills *int64 `json:"oom_kills,omitempty"`
}

// supervised says whether the supervisor that wrote the record still runs.
func (r record) supervised() bool { return r.Boot == proctree.BootID() && r.Supervisor.Running() }

const (
	specFile    = "spec.json"
	statusFile  = "status.json"
	stderrFile  = "err"
	socketFile  = "sock"
	journalFile = "out." // and the offset of its first byte
	spareFile   = "reserve"
	tailFile    = "tail" // of a segment, until it is whole
)

// writeJSON replaces dir/name as a whole.
func writeJSON(dir, name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	temp := path + ".new"
	if err := os.WriteFile(temp, append(raw, '\n'), 0o600); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), removeIfThere(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func readJSON(dir, name string, v any) error {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}
