package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// errand is what a client wants of a bridge. Fields may be added; both sides ignore what they do not know.
type errand struct {
	Protocol
	Op    errandOp      `json:"op"`
	Run   string        `json:"run,omitempty"`
	Hello *hello        `json:"hello,omitempty"` // errandStart, errandJoin: who asks is from then on connected to the run
	Name  string        `json:"name,omitempty"`  // errandLook
	Grace time.Duration `json:"grace,omitempty"` // errandEnd
	Age   time.Duration `json:"age,omitempty"`   // errandPrune
	Now   time.Time     `json:"now,omitzero"`    // errandSince
}

func (e errand) greets() hello { return *e.Hello }

type errandOp string

const (
	errandWarm    errandOp = "warm" // have a supervisor ready
	errandStart   errandOp = "start"
	errandJoin    errandOp = "join"
	errandList    errandOp = "list"
	errandKill    errandOp = "kill"
	errandEnd     errandOp = "end" // what is left of a run whose supervisor cannot be talked to
	errandCollect errandOp = "collect"
	errandPrune   errandOp = "prune"
	errandLook    errandOp = "look"
	errandSince   errandOp = "since"
)

// outcome is the answer to an errand other than start and join, whose answers are a supervisor's.
type outcome struct {
	refused
	Runs  []Info    `json:"runs,omitempty"`
	Path  string    `json:"path,omitempty"`
	Count int       `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// refusal puts an error into words of the protocol.
func refusal(err error, proto Protocol) refused {
	no := refused{Protocol: proto, Error: err.Error(), Errno: errnoOf(err)}
	var version *VersionError
	var offset *OffsetError
	switch {
	case errors.As(err, &version):
		no.Kind, no.Protocol = refusedVersion, version.Supervisor
	case errors.As(err, &offset):
		no.Kind, no.End = refusedOffset, offset.End
	case no.Errno != 0:
	case errors.Is(err, fs.ErrNotExist):
		no.Errno = int(syscall.ENOENT)
	case errors.Is(err, fs.ErrExist):
		no.Errno = int(syscall.EEXIST)
	}
	return no
}

// failure is the error an outcome tells of.
func (o outcome) failure(e errand) error {
	if o.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", e.Op, o.err(hello{Protocol: e.Protocol}))
}
